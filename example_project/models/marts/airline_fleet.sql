{{ config(order_by='carrier') }}

-- An ordinary table, built anew by each run.
select
    m.carrier as carrier,
    a.name as airline,
    max(m.aircraft_exact) as aircraft_in_best_month,
    count() as months
from {{ ref('monthly_carrier_aircraft') }} as m
inner join {{ source('raw', 'airlines') }} as a on m.carrier = a.carrier
group by m.carrier, a.name
