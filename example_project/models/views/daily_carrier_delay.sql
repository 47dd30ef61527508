{{ config(partition_by='toYYYYMM(flight_date)') }}

select
    carrier,
    flight_date,
    count() as arrived,
    avg(arr_delay) as arr_delay_mean,
    quantile(0.9)(arr_delay) as arr_delay_p90,
    max(arr_delay) as arr_delay_max
from {{ source('raw', 'flights') }}
where arr_delay is not null
group by carrier, flight_date
