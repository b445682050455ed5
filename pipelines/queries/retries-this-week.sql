-- Who retries most this week?
-- :since  from this day on, for example 2026-01-31 = a week ago
SELECT client_id, sum(retry_lines) AS retry_lines, sum(expired_batches) AS expired_batches,
       min(attempts_left_min) AS attempts_left_min, max(retry_rate_per_s) AS retry_rate_per_s_max
FROM producer_reliability
WHERE client_id <> ''
  AND substr(hour, 1, 10) >= coalesce(try_to_date(:since), date_sub(current_date(), 7))::string
GROUP BY client_id
HAVING sum(retry_lines) > 0
ORDER BY retry_lines DESC
