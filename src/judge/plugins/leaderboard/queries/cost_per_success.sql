-- The cost of judging divided by the number of successes, cheapest first. Submissions with an unknown price come next, and
-- incomplete ones last: more than 5 % of their tasks are aborted or unscored, and not all of these were paid for.
-- "Model USD" is the metered cost of the participant's own model calls, a lower bound; NULL where none was metered.
-- Files are read as JSON, so that a page that has only older files, which state no costs, shows rows instead of an error.
-- Shards of one submission are one row: results of a file that name a shard, by participant. The counts are those of their entries,
-- each counted once; of an index that is there twice, the worse shard counts. "/detail/shards" says how many there are and what
-- is wrong: a missing or doubled shard, or one of another task set, judge, configuration or agent. Such a row is incomplete.
-- This part is the same in every query.
WITH listed AS (
  SELECT ROW_NUMBER() OVER () AS number, file, to_json(t.participants) AS ids, to_json(unnest) AS result
  FROM (SELECT ROW_NUMBER() OVER () AS file, participants, results FROM results) t, UNNEST(t.results)
),
parts AS MATERIALIZED (
  SELECT number, file, ids, result, COALESCE(result ->> '/winner', '') AS winner,
         TRY_CAST(result ->> '/detail/provenance/shard/index' AS BIGINT) AS part,
         TRY_CAST(result ->> '/detail/provenance/shard/of' AS BIGINT) AS of_parts,
         TRY_CAST(result ->> '/detail/provenance/shard/tasks' AS BIGINT) AS set_size,
         TRY_CAST(result ->> '/detail/success_rate' AS DOUBLE) AS rate,
         result ->> '/detail/judge/method' AS method
  FROM listed
),
shards AS MATERIALIZED (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY file, winner, part ORDER BY rate, number) AS turn
  FROM parts WHERE of_parts > 1
),
shard_tasks AS (
  -- A task that several shards have counts once, as the worse of its attempts.
  SELECT file, winner, task, task ->> 'verdict' AS verdict, json_extract_string(task, '/clean_task') IS NOT NULL AS is_attacked,
         COALESCE(task ->> 'task_id', number || '') AS played,
         ROW_NUMBER() OVER (
           PARTITION BY file, winner, task ->> 'task_id', task ->> 'epoch', json_extract_string(task, '/clean_task')
           ORDER BY COALESCE(task ->> 'verdict' = 'success', FALSE), number
         ) AS turn
  FROM (SELECT file, winner, number, UNNEST(json_extract(result, '$.detail.tasks[*]')) AS task FROM shards WHERE turn = 1)
),
shard_plays AS (
  SELECT file, winner, played, COUNT(*) AS attempts, COUNT(*) FILTER (WHERE verdict = 'success') AS successes,
         COUNT(*) FILTER (WHERE verdict IS NULL OR verdict NOT IN ('unscored', 'aborted')) AS scored,
         COUNT(*) FILTER (WHERE verdict = 'unscored') AS unscored, BOOL_AND(task ->> 'stop_reason' = 'finished') AS is_finished
  FROM shard_tasks WHERE turn = 1 AND NOT is_attacked GROUP BY file, winner, played
),
shard_counts AS (
  SELECT file, winner, COUNT(*) AS total, SUM(attempts)::BIGINT AS attempts, SUM(successes)::BIGINT AS successes,
         SUM(scored)::BIGINT AS scored, 100 * AVG(successes / NULLIF(scored, 0)) AS rate, SUM(successes / attempts) AS of_all,
         COUNT(*) FILTER (WHERE is_finished) AS finished, COUNT(*) FILTER (WHERE scored > 0) AS scored_tasks,
         COUNT(*) FILTER (WHERE scored = 0 AND unscored > 0) AS unscored
  FROM shard_plays GROUP BY file, winner
),
shard_lists AS (
  SELECT file, winner, COALESCE(list(task) FILTER (WHERE turn = 1), []) AS tasks, COUNT(*) FILTER (WHERE turn > 1) AS repeated
  FROM shard_tasks GROUP BY file, winner
),
shard_exclusions AS (
  SELECT file, winner, list(DISTINCT excluded) AS excluded
  FROM (SELECT file, winner, UNNEST(json_extract(result, '$.detail.excluded[*]')) AS excluded FROM shards WHERE turn = 1)
  GROUP BY file, winner
),
shard_groups AS (
  SELECT file, winner, MIN(number) AS number, ARG_MIN(ids, number) AS ids, ARG_MIN(result, number) AS result,
         MAX(of_parts) AS of_parts, MAX(set_size) AS set_size, COUNT(*) FILTER (WHERE turn = 1) AS present,
         COALESCE(list(part) FILTER (WHERE turn = 1 AND part IS NOT NULL), []) AS found,
         COALESCE(list(DISTINCT part) FILTER (WHERE turn > 1 AND part IS NOT NULL), []) AS doubled,
         COUNT(*) FILTER (WHERE part IS NULL OR part < 0 OR part >= of_parts) AS strange, COUNT(DISTINCT of_parts) AS divisions,
         COUNT(DISTINCT result ->> '/detail/provenance/shard/tasks_sha256') AS sets,
         COUNT(DISTINCT result ->> '/detail/provenance/config_checksum') AS configurations,
         GREATEST(
           COUNT(DISTINCT result ->> '/detail/judge/code_checksum'),
           COUNT(DISTINCT concat_ws(' ', method, result ->> '/detail/judge/model', result ->> '/detail/judge/prompt_checksum'))
             FILTER (WHERE method <> 'checks')
         ) AS judges,
         COUNT(DISTINCT NULLIF(concat_ws(' ', result ->> '/detail/provenance/identity/card_name',
           result ->> '/detail/provenance/identity/card_version', result ->> '/detail/provenance/identity/model'), '')) AS agents,
         ARG_MIN(result -> '/detail/judge', IF(method <> 'checks', number, number + 1000000000)) AS judge,
         IF(COUNT(result ->> '/detail/cost_usd') < COUNT(*), NULL,
            SUM(TRY_CAST(result ->> '/detail/cost_usd' AS DOUBLE)) FILTER (WHERE turn = 1)) AS cost,
         IF(COUNT(result ->> '/detail/participant_cost_usd') < COUNT(*), NULL,
            SUM(TRY_CAST(result ->> '/detail/participant_cost_usd' AS DOUBLE)) FILTER (WHERE turn = 1)) AS model_cost,
         BOOL_OR(COALESCE(TRY_CAST(result ->> '/detail/self_recorded' AS BOOLEAN), FALSE)) AS self_recorded
  FROM shards GROUP BY file, winner
),
shard_problems AS (
  SELECT *, COALESCE(total, 0) + GREATEST(COALESCE(set_size, 0) - COALESCE(total, 0), 0) AS all_tasks,
         NULLIF(concat_ws('; ',
           CASE WHEN len(missing) > 0 THEN 'missing: ' || array_to_string(missing, ', ') END,
           CASE WHEN len(doubled) > 0 THEN 'twice: ' || array_to_string(list_sort(doubled), ', ') END,
           CASE WHEN strange > 0 THEN strange || ' without a valid index' END,
           CASE WHEN divisions > 1 THEN divisions || ' numbers of shards' END,
           CASE WHEN sets > 1 THEN sets || ' task sets' END,
           CASE WHEN judges > 1 THEN judges || ' judges' END,
           CASE WHEN configurations > 1 THEN configurations || ' configurations' END,
           CASE WHEN agents > 1 THEN agents || ' agents' END,
           CASE WHEN repeated > 0 THEN 'tasks in several shards: ' || repeated END,
           CASE WHEN len(missing) = 0 AND COALESCE(set_size, 0) > COALESCE(total, 0)
             THEN 'tasks missing: ' || (set_size - COALESCE(total, 0)) END
         ), '') AS problem
  FROM (
    SELECT *, [index FOR index IN range(0, LEAST(of_parts, 100)) IF NOT list_contains(found, index)] AS missing
    FROM shard_groups LEFT JOIN shard_counts USING (file, winner) LEFT JOIN shard_lists USING (file, winner)
         LEFT JOIN shard_exclusions USING (file, winner)
  )
),
published AS MATERIALIZED (
  SELECT number, file, ids, IF((result -> '/detail/shards') IS NULL, result, json_merge_patch(result, '{"detail": {"shards": null}}'))
           AS result
  FROM parts WHERE of_parts IS NULL OR of_parts <= 1
  UNION ALL
  SELECT number, file, ids, json_merge_patch(result, json_object('detail', json_object(
           'success_rate', COALESCE(rate, 0), 'successful_tasks', COALESCE(finished, 0), 'completed_tasks', COALESCE(finished, 0),
           'total_tasks', all_tasks, 'judged_successes', COALESCE(successes, 0), 'scored_tasks', COALESCE(scored_tasks, 0),
           'unscored_tasks', COALESCE(unscored, 0),
           'aborted_tasks', all_tasks - COALESCE(scored_tasks, 0) - COALESCE(unscored, 0),
           'success_rate_of_all', 100 * COALESCE(of_all, 0) / NULLIF(all_tasks, 0),
           'is_complete', IF(problem IS NULL, NULL, FALSE),
           'attempts', COALESCE(attempts, 0) + all_tasks - COALESCE(total, 0), 'scored_attempts', COALESCE(scored, 0),
           'judge', judge, 'cost_usd', cost, 'participant_cost_usd', model_cost, 'self_recorded', self_recorded,
           'by_level', NULL, 'by_truth', NULL, 'confidence_interval_95', NULL, 'repeats', NULL, 'labels', NULL,
           'by_metadata', NULL, 'cluster', NULL, 'efficiency', NULL,
           'corrected_success_rate', NULL, 'corrected_interval_95', NULL,
           'excluded', to_json(excluded), 'tasks', to_json(COALESCE(tasks, [])),
           'shards', json_object('of', of_parts, 'problem', problem,
             'text', LEFT(concat(present, ' of ', of_parts, COALESCE('; ' || problem, '')), 300))
         ))) AS result
  FROM shard_problems
),
entries AS (
  -- Without the tasks under attacks and variants, which count in no rate but those of `safety`.
  SELECT number, file, ids, CASE WHEN CAST(result AS VARCHAR) LIKE '%"clean_task":%' THEN json_merge_patch(result, json_object(
           'detail', json_object('tasks', to_json([
             task FOR task IN CAST(result -> '/detail/tasks' AS JSON[]) IF json_extract_string(task, '/clean_task') IS NULL
           ])))) ELSE result END AS result
  FROM published
),
task_keys AS (
  SELECT file, COALESCE(
           task ->> 'task_sha256',
           NULLIF(concat_ws(' ', task ->> 'task_id', task ->> 'website', task ->> 'task_description'), '')
         ) AS task_key
  FROM (SELECT file, UNNEST(CAST(result -> '/detail/tasks' AS JSON[])) AS task FROM entries)
),
task_sets AS (
  -- Computed from the whole file, whose results may be shards of one set; the same in every query.
  SELECT file, LEFT(md5(string_agg(DISTINCT task_key, ',' ORDER BY task_key)), 8) AS task_set FROM task_keys GROUP BY file
),
costs AS (
  -- The same name as in the other queries: the participant's, if a file has no id.
  SELECT number, file, COALESCE(
           NULLIF(COALESCE(
             ids ->> '/white_agent', ids ->> ('/' || REPLACE(REPLACE(result ->> 'winner', '~', '~0'), '/', '~1'))
           ), ''),
           result ->> '/detail/provenance/identity/name',
           NULLIF(concat_ws(' ', result ->> '/detail/provenance/identity/card_name',
                                 result ->> '/detail/provenance/identity/card_version'), ''),
           ids ->> '/white_agent'
         ) AS id,
         CAST(result ->> '/detail/cost_usd' AS DOUBLE) AS cost,
         TRY_CAST(result ->> '/detail/participant_cost_usd' AS DOUBLE) AS model_cost,
         CAST(result ->> '/detail/judged_successes' AS BIGINT) AS successes,
         CAST(COALESCE(result ->> '/detail/scored_attempts', result ->> '/detail/scored_tasks') AS BIGINT) AS scored,
         CAST(result ->> '/detail/total_tasks' AS BIGINT) AS total,
         CAST(COALESCE(result ->> '/detail/attempts', result ->> '/detail/total_tasks') AS BIGINT) AS attempts, task_set,
         -- Not lost: a frozen site does not confirm the success.
         COALESCE(len([task FOR task IN CAST(result -> '/detail/tasks' AS JSON[])
                       IF task ->> 'verdict' = 'unscored' AND task ->> 'reason_code' IN ('off_archive', 'uncertain_archive') AND (task ->> 'coverage') IS NOT NULL]), 0)
           AS unconfirmed, (result ->> '/detail/shards/problem') IS NOT NULL AS is_short
  FROM entries LEFT JOIN task_sets USING (file)
)
SELECT /* place */ id, ROUND(cost / NULLIF(successes, 0), 4) AS "USD per Success", ROUND(cost, 4) AS "USD",
       successes AS "Successes", scored AS "Scored", total AS "# Tasks",
       attempts > 0 AND 20 * (attempts - scored - unconfirmed) <= attempts AND NOT is_short AS "Complete",
       attempts AS "Attempts", ROUND(model_cost / NULLIF(total, 0), 4) AS "Model USD per Task",
       ROUND(model_cost / NULLIF(successes, 0), 4) AS "Model USD per Success", task_set AS "Task Set"
FROM costs ORDER BY COALESCE(20 * (attempts - scored - unconfirmed) > attempts, FALSE) OR is_short, "USD per Success" ASC NULLS LAST, id;
