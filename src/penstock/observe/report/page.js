"use strict";
// Shows the values that lie under the pointer, and at the arrow keys of a chart that has the focus.
(() => {
  const BINARY = ["B", "KiB", "MiB", "GiB", "TiB"];

  function written(value, unit) {
    if (unit === "share") return (100 * value).toFixed(1) + "%";
    if (unit === "count") return Math.abs(value) < 1 ? value.toPrecision(4) : Math.round(value).toLocaleString("en");
    if (unit !== "bytes") return String(Number(value.toPrecision(5)));
    let size = 0;
    while (Math.abs(value) >= 1024 && size < BINARY.length - 1) { value /= 1024; size += 1; }
    return value.toFixed(1) + " " + BINARY[size];
  }

  function nearest(points, x) {
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < x) low = middle; else high = middle;
    }
    return Math.abs(points[low][0] - x) <= Math.abs(points[high][0] - x) ? points[low] : points[high];
  }

  function line(look, name, value) {
    const row = document.createElement("div"), key = document.createElement("i"), number = document.createElement("b");
    key.className = "key " + look;
    number.textContent = value;
    row.append(key, name, number);
    return row;
  }

  function watch(figure) {
    const chart = JSON.parse(figure.dataset.chart), svg = figure.querySelector("svg");
    const cursor = svg.querySelector(".cursor"), box = svg.viewBox.baseVal, tip = document.createElement("div");
    const left = chart.plot.left, right = box.width - chart.plot.right, span = chart.x.high - chart.x.low;
    const stops = [...new Set(chart.series.flatMap((each) => each.points.map((point) => point[0])))].sort((a, b) => a - b);
    let shown = null;
    tip.className = "tip";

    function show(x) {
      shown = nearest(stops.map((stop) => [stop]), x)[0];
      const place = left + (shown - chart.x.low) / span * (right - left);
      const scale = svg.getBoundingClientRect().width / box.width;
      cursor.setAttribute("x1", place);
      cursor.setAttribute("x2", place);
      cursor.style.visibility = "visible";
      tip.replaceChildren(chart.x.label + " " + written(shown, chart.x.unit));
      for (const each of chart.series) {
        const [at, value] = nearest(each.points, shown);
        const where = at === shown ? "" : " (at " + written(at, chart.x.unit) + ")";
        tip.append(line(each.look, each.name + where, written(value, chart.y.unit)));
      }
      figure.append(tip);
      const wanted = place * scale + 14;
      const most = figure.clientWidth - tip.offsetWidth - 6;
      tip.style.left = Math.max(6, wanted + 14 > most ? wanted - tip.offsetWidth - 14 : wanted + 14) + "px";
      tip.style.top = "64px";
    }

    function hide() {
      tip.remove();
      cursor.style.visibility = "hidden";
    }

    svg.addEventListener("pointermove", (event) => {
      const edges = svg.getBoundingClientRect(), at = (event.clientX - edges.left) / edges.width * box.width;
      show(chart.x.low + (at - left) / (right - left) * span);
    });
    svg.addEventListener("pointerleave", hide);
    figure.tabIndex = 0;
    figure.addEventListener("blur", hide);
    figure.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (move === undefined) return;
      event.preventDefault();
      const next = shown === null ? 0 : stops.indexOf(shown) + move;
      show(stops[Math.min(stops.length - 1, Math.max(0, next))]);
    });
  }

  document.querySelectorAll("[data-chart]").forEach(watch);
})();
