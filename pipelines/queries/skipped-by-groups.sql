-- Which consumer groups skipped messages, or came too late for them?
-- :group  only groups like this one = %
SELECT `group`, topic, sum(skipped_by_consumer) AS skipped,
       sum(expired_before_read) AS expired_before_read, sum(pending) AS pending, sum(sent) AS owed
FROM delivery_ledger
WHERE `group` <> '' AND `group` LIKE :group
GROUP BY `group`, topic
HAVING skipped + expired_before_read > 0
ORDER BY skipped + expired_before_read DESC
