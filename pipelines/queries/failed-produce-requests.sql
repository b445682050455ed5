-- When did FailedProduceRequests rise, on which broker, and who was hit?
-- :topic  only topics like this one = %
-- :minutes  clients that were refused within this many minutes count as hit = 1
WITH rises AS (
  SELECT topic, broker, min(at) AS first_at, max(at) AS last_at, sum(increase) AS failed
  FROM broker_metrics
  WHERE metric = 'failed-produce-requests-total' AND topic LIKE :topic AND increase > 0
  GROUP BY topic, broker
)
SELECT r.first_at, r.last_at, r.topic, r.broker, r.failed::bigint AS failed_requests,
       array_sort(collect_set(e.client_id)) AS clients, array_sort(collect_set(e.error)) AS errors
FROM rises r
LEFT JOIN producer_events e
  ON e.topic = r.topic AND e.error IS NOT NULL
 AND e.at BETWEEN r.first_at - make_interval(0, 0, 0, 0, 0, :minutes::int)
              AND r.last_at + make_interval(0, 0, 0, 0, 0, :minutes::int)
GROUP BY ALL
ORDER BY failed_requests DESC
