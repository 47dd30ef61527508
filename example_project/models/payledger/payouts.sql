{{ config(materialized='view') }}

-- What can be paid out: the balance less the reserve, never below zero.
select
    merchant_id,
    currency,
    greatest(balance_cents - reserve_cents, 0) as payable_cents,
    last_event_at
from {{ ref('merchant_balance') }}
