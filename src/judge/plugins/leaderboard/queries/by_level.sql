-- One row per participant, level and task set, over all of the participant's submissions. Unscored and aborted tasks count in "Success Rate
-- of All" only; a level with more than 5 % of them is incomplete and ranks below the complete ones.
-- If tasks were played in several epochs, rates are means over tasks, and the columns of successes and scored tasks count
-- attempts. Older files have no verdicts, only `success` or `passed`. If these do not add up to the file's own success
-- rate, they mean that an episode ended, not that the task was done, and the file's tasks are left out.
-- Files are read as JSON, so that a page that has only older files shows rows instead of an error.
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
tasks AS (
  SELECT number, file, ids, result, UNNEST(CAST(result -> '/detail/tasks' AS JSON[])) AS task FROM entries
),
told AS (
  -- Agents without an id are identified by the participant's name, because rates of different agents must not be mixed.
  SELECT number, file, COALESCE(
           NULLIF(COALESCE(
             ids ->> '/white_agent', ids ->> ('/' || REPLACE(REPLACE(result ->> 'winner', '~', '~0'), '/', '~1'))
           ), ''),
           result ->> '/detail/provenance/identity/name',
           NULLIF(concat_ws(' ', result ->> '/detail/provenance/identity/card_name',
                                 result ->> '/detail/provenance/identity/card_version'), ''), ''
         ) AS id,
         CAST(result ->> '/detail/success_rate' AS DOUBLE) AS rate, (result ->> '/detail/shards/problem') IS NOT NULL AS is_short,
         COALESCE(task ->> 'level', 'unknown') AS level, task ->> 'verdict' AS verdict,
         COALESCE(
           task ->> 'task_sha256',
           NULLIF(concat_ws(' ', task ->> 'task_id', task ->> 'website', task ->> 'task_description'), '')
         ) AS task_key,
         -- A frozen site does not confirm the success: not lost, and the rate of all is the lower bound of the rate.
         COALESCE(task ->> 'verdict' = 'unscored' AND task ->> 'reason_code' IN ('off_archive', 'uncertain_archive') AND (task ->> 'coverage') IS NOT NULL, FALSE)
           AS is_unconfirmed, (task ->> 'coverage') IS NOT NULL AS is_frozen,
         COALESCE(task ->> 'verdict' = 'success', COALESCE(task ->> 'success', task ->> 'passed', 'false') = 'true') AS success,
         -- The attempts at a task in several epochs belong together. Older files have one entry per task.
         COALESCE(IF(task ->> 'epoch' IS NULL, NULL, task ->> 'task_id'), 'entry ' || ROW_NUMBER() OVER ()) AS played
  FROM tasks
),
task_sets AS (
  -- Computed from the whole file, whose results may be shards of one set; the same in every query.
  SELECT file, LEFT(md5(string_agg(DISTINCT task_key, ',' ORDER BY task_key)), 8) AS task_set FROM told GROUP BY file
),
weighed AS (
  SELECT *, COUNT(verdict) OVER file AS verdicts, 100 * AVG(CAST(success AS INTEGER)) OVER file AS own_rate,
         COALESCE(verdict, '') NOT IN ('unscored', 'aborted') AS is_scored
  FROM told WINDOW file AS (PARTITION BY number)
),
per_task AS (
  SELECT id, level, BOOL_OR(is_short) AS is_short, COUNT(*) FILTER (WHERE is_scored AND success) AS successes,
         COUNT(*) FILTER (WHERE is_scored) AS scored, COUNT(*) AS attempts, ANY_VALUE(task_set) AS task_set,
         COUNT(*) FILTER (WHERE is_unconfirmed) AS unconfirmed, BOOL_OR(is_frozen) AS is_frozen
  FROM weighed JOIN task_sets USING (file)
  WHERE verdicts > 0 OR ABS(own_rate - COALESCE(rate, own_rate)) < 0.1
  GROUP BY number, played, id, level
),
counted AS (
  SELECT id, level, BOOL_OR(is_short) AS is_short, SUM(successes)::BIGINT AS successes, SUM(scored)::BIGINT AS scored, COUNT(*) AS total,
         SUM(attempts)::BIGINT AS attempts, SUM(attempts - scored - unconfirmed)::BIGINT AS lost, BOOL_OR(is_frozen) AS is_frozen, 100 * AVG(successes / NULLIF(scored, 0)) AS rate,
         100 * AVG(successes / attempts) AS rate_of_all,
         task_set
  FROM per_task
  GROUP BY id, level, task_set
)
SELECT id, level AS "Level", ROUND(rate, 1) AS "Success Rate",
       successes AS "Successes", scored AS "Scored", total AS "# Tasks",
       ROUND(rate_of_all, 1) AS "Success Rate of All", 20 * lost <= attempts AND NOT is_short AS "Complete",
       attempts AS "Attempts", task_set AS "Task Set"
FROM counted
ORDER BY array_position(['easy', 'medium', 'hard', 'unknown'], level), 20 * lost > attempts OR is_short,
         ROUND(IF(is_frozen, rate_of_all, rate), 1) DESC, id, task_set;
