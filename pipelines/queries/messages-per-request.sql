-- How many messages go into one produce request, by topic? About 1 means synchronous sends.
-- :topic  only topics like this one = %
WITH counted AS (
  SELECT topic,
         coalesce(sum(increase) FILTER (WHERE metric = 'messages-in-total'), 0) AS messages,
         coalesce(sum(increase) FILTER (WHERE metric = 'produce-requests-total'), 0) AS requests,
         coalesce(sum(increase) FILTER (WHERE metric = 'failed-produce-requests-total'), 0) AS failed
  FROM broker_metrics
  WHERE topic LIKE :topic
  GROUP BY topic
)
SELECT topic, messages::bigint, requests::bigint, failed::bigint AS failed_requests,
       round(try_divide(messages, requests - failed), 2) AS messages_per_request
FROM counted
ORDER BY messages_per_request NULLS LAST, topic
