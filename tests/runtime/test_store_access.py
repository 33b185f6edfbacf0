"""Where S3 is, as the environment says."""

from penstock.runtime.store_access import StoreAccess


def test_nothing_said() -> None:
    assert StoreAccess.from_environment({"AWS_ENDPOINT_URL": ""}) == StoreAccess(None, None)


def test_the_usual_variables() -> None:
    environment = {"AWS_ENDPOINT_URL": "http://localhost:9000", "AWS_DEFAULT_REGION": "eu-west-1"}

    assert StoreAccess.from_environment(environment) == StoreAccess("http://localhost:9000", "eu-west-1")


def test_the_more_special_name_comes_first() -> None:
    environment = {
        "AWS_ENDPOINT_URL": "http://all:1",
        "AWS_ENDPOINT_URL_S3": "http://s3:2",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-west-2",
    }

    assert StoreAccess.from_environment(environment) == StoreAccess("http://s3:2", "us-west-2")
