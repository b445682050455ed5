-- How long do sends take, hour by hour?
-- :client  only clients like this one = %
WITH metrics AS (
  SELECT hour, client_id,
         round(avg(value) FILTER (WHERE metric = 'request-latency-avg'), 1) AS request_avg_ms,
         max(value) FILTER (WHERE metric = 'request-latency-max') AS request_max_ms,
         max(value) FILTER (WHERE metric = 'record-queue-time-max') AS queue_max_ms
  FROM client_metrics
  WHERE node IS NULL AND topic IS NULL AND NOT isnan(value)
  GROUP BY hour, client_id
), audits AS (
  SELECT hour, client_id, max(latency_p50_ms) AS delivered_p50_ms,
         max(latency_p99_ms) AS delivered_p99_ms
  FROM producer_reliability
  WHERE latency_p99_ms IS NOT NULL
  GROUP BY hour, client_id
)
SELECT *
FROM metrics FULL JOIN audits USING (hour, client_id)
WHERE client_id LIKE :client
ORDER BY hour, client_id
