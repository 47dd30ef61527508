{{ config(
    materialized='incremental',
    incremental_strategy='microbatch',
    event_time='flight_date',
    batch_size='year',
    begin='2013-01-01',
    partition_by='toYYYYMM(flight_date)',
    order_by=['origin', 'flight_date']
) }}

-- Batch by batch: a run replaces the rows of its batches in one commit each.
select
    origin,
    flight_date,
    count() as scheduled,
    countIf(dep_time is null) as cancelled
from {{ source('raw', 'flights') }}
group by origin, flight_date
