"""The flights and miles of each aircraft, computed by Spark over the source's parts."""

from pyspark.sql import functions as F


def model(dbt, session):
    dbt.config(materialized="table", submission_method="spark", order_by="tailnum")
    flown = dbt.source("raw", "flights").where("dep_time is not null and tailnum is not null")
    return flown.groupBy("tailnum").agg(
        F.count("*").alias("flights"),
        F.sum("distance").alias("miles"),
        F.countDistinct("carrier").alias("carriers"),
    )
