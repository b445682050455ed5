-- Which batches are still being retried, and when will they be given up?
SELECT client_id, host, topic, partition, error, opened_at, attempts_left,
       exhausts_at_earliest, exhausted_by, records_at_stake, because
FROM retry_budgets
WHERE ended_by IS NULL
ORDER BY exhausts_at_earliest NULLS LAST, attempts_left
