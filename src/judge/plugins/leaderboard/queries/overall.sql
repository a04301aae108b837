-- One row per submission, best first: the leaderboard page's own four columns, for participants of any role (the page's
-- own query knows only the role white_agent), the rate of all tasks, and whether the submission is complete: at most 5 % of
-- its tasks are aborted or unscored. Incomplete submissions rank below all others, so that losing a task gains nothing.
-- A file's own values for "Success Rate of All" and "Complete" are not trusted. Both are recomputed from the verdicts and
-- from the counts, and the worst of the values is shown; NULL if a file has neither verdicts nor counts (older files).
-- Rows are ranked within one task set: "Task Set" is computed from the tasks themselves. "Decided By" names what decided
-- the rate (checks, another method without a model, a judge model), and marks a judge model whose unreadable replies count as failures
-- ("published fidelity"). "Recorded By" says whether the judge or the agent itself recorded the evidence. "Excluded" lists
-- the tasks that were deliberately not played, with their reasons. "Shards" says how many of them are there and what is wrong.
-- "Corrected by Labels" is the success rate by people's labels of a sample, as the file states it; it ranks nothing, and is NULL
-- without labels.
-- "Lower Bound" and "Upper Bound" are those of the rate of all on live sites, for submissions with frozen sites: successes that a frozen
-- site does not confirm are not lost, and such submissions are ranked by the lower bound. NULL on live sites.
-- Files are read as JSON, so that a page that has only older files shows rows instead of an error. The id is looked up by a
-- JSON pointer, because a role may have any name.
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
verdicts AS (
  SELECT number, task ->> 'verdict' AS verdict,
         -- A frozen site does not confirm the success: not lost, and the rate of all is the lower bound of the rate.
         COALESCE(task ->> 'verdict' = 'unscored' AND task ->> 'reason_code' IN ('off_archive', 'uncertain_archive') AND (task ->> 'coverage') IS NOT NULL, FALSE)
           AS is_unconfirmed
  FROM (SELECT number, UNNEST(CAST(result -> '/detail/tasks' AS JSON[])) AS task FROM entries) WHERE (task ->> 'verdict') IS NOT NULL
),
truths AS (
  -- Some pages give partial rewards, so their rows say which rewards count as a success.
  SELECT number, (task ->> 'decided_by') || COALESCE(' (' || (task ->> 'success_rule') || ' reward)', '') AS truth, model
  FROM (
    SELECT number, UNNEST(CAST(result -> '/detail/tasks' AS JSON[])) AS task,
           (result ->> '/detail/judge/model') || CASE WHEN result ->> '/detail/judge/fidelity' = 'published'
             THEN ' (published fidelity)' ELSE '' END AS model FROM entries
  )
),
decided AS (
  SELECT number, string_agg(DISTINCT CASE WHEN truth = 'judge' THEN COALESCE(model, truth) ELSE truth END, ', '
           ORDER BY CASE WHEN truth = 'judge' THEN COALESCE(model, truth) ELSE truth END) AS decided
  FROM truths WHERE truth <> '' GROUP BY number
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
lost AS (
  SELECT number, COUNT(*) FILTER (WHERE verdict IN ('unscored', 'aborted')) AS tasks,
         COUNT(*) FILTER (WHERE verdict = 'success') AS successes, COUNT(*) FILTER (WHERE is_unconfirmed) AS unconfirmed
  FROM verdicts GROUP BY number
),
attempted AS (
  -- Files without epochs have an entry for each task.
  SELECT number, COALESCE(IF(task ->> 'epoch' IS NULL, NULL, task ->> 'task_id'), 'entry ' || ROW_NUMBER() OVER ()) AS name,
         task ->> 'verdict' AS verdict, (task ->> 'coverage') IS NOT NULL AS is_frozen,
         COALESCE(task ->> 'verdict' = 'success' OR (task ->> 'coverage' IN ('uncertain', 'off_archive') AND (
           task ->> 'verdict' = 'failure' OR task ->> 'reason_code' IN ('off_archive', 'uncertain_archive'))), FALSE) AS may_succeed
  FROM (SELECT number, UNNEST(CAST(result -> '/detail/tasks' AS JSON[])) AS task FROM entries)
),
task_rates AS (
  SELECT number, COUNT(verdict) AS verdicts, COUNT(*) FILTER (WHERE verdict = 'success')
           / NULLIF(COUNT(*) FILTER (WHERE verdict IS NULL OR verdict NOT IN ('unscored', 'aborted')), 0) AS rate,
         AVG(CAST(may_succeed AS INTEGER)) AS may_rate, BOOL_OR(is_frozen) AS is_frozen
  FROM attempted GROUP BY number, name
),
borne_out AS (
  SELECT number, COALESCE(100 * AVG(rate), 0) AS rate, 100 * AVG(may_rate) AS may_rate, BOOL_OR(is_frozen) AS is_frozen
  FROM task_rates GROUP BY number HAVING SUM(verdicts) > 0
),
left_out AS (
  SELECT number, LEFT(string_agg(concat(each ->> 'task_id', ' (by the ', each ->> 'by', '): ', each ->> 'reason'), '; '), 500)
           AS excluded
  FROM (SELECT number, UNNEST(json_extract(result, '$.detail.excluded[*]')) AS each FROM entries) GROUP BY number
),
stated AS (
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
         LEAST(TRY_CAST(result ->> '/detail/success_rate' AS DOUBLE), borne_out.rate) AS rate,
         TRY_CAST(result ->> '/detail/successful_tasks' AS BIGINT) AS completed,
         TRY_CAST(result ->> '/detail/total_tasks' AS BIGINT) AS total,
         -- With several epochs, there are more attempts than tasks: one per entry.
         IF(TRY_CAST(result ->> '/detail/attempts' AS BIGINT) > total,
            GREATEST(json_array_length(result, '/detail/tasks')::BIGINT, total), total) AS attempts,
         lost.successes, COALESCE(lost.unconfirmed, 0) AS unconfirmed, COALESCE(borne_out.is_frozen, FALSE) AS is_frozen, borne_out.may_rate,
         GREATEST(
           CASE WHEN json_array_length(result, '/detail/tasks') > 0 THEN COALESCE(lost.tasks, 0) END,
           TRY_CAST(result ->> '/detail/unscored_tasks' AS BIGINT) + TRY_CAST(result ->> '/detail/aborted_tasks' AS BIGINT)
         ) AS lost,
         TRY_CAST(result ->> '/detail/success_rate_of_all' AS DOUBLE) AS rate_of_all,
         TRY_CAST(result ->> '/detail/is_complete' AS BOOLEAN) AS is_complete, decided, task_set,
         result -> '/detail/provenance/identity' AS played, result -> '/detail/provenance' AS made_with,
         COALESCE(TRY_CAST(result ->> '/detail/self_recorded' AS BOOLEAN), FALSE)
           OR CAST(json_extract(result, '$.detail.tasks[*].flags') AS VARCHAR) LIKE '%"self_recorded"%' AS self_recorded,
         result ->> '/detail/shards/text' AS shards, TRY_CAST(result ->> '/detail/corrected_success_rate' AS DOUBLE) AS corrected,
         TRY_CAST(result ->> '/detail/labels/labels' AS BIGINT) AS labels,
         TRY_CAST(result ->> '/detail/efficiency' AS DOUBLE) AS efficiency,
         left_out.excluded
  FROM entries LEFT JOIN lost USING (number) LEFT JOIN decided USING (number) LEFT JOIN task_sets USING (file)
       LEFT JOIN borne_out USING (number) LEFT JOIN left_out USING (number)
),
made AS (
  -- The rate times the scored tasks is a whole number of successes, however the rate was rounded. With several epochs it
  -- is a mean over tasks, and the successes are counted.
  SELECT *, IF(attempts > total, 100.0 * successes / attempts,
               100 * ROUND(rate / 100 * (total - lost)) / NULLIF(total, 0)) AS made_rate,
         attempts > 0 AND 20 * (lost - unconfirmed) <= attempts AS made_complete
  FROM stated
),
shown AS (
  SELECT *, LEAST(rate_of_all, made_rate) AS shown_rate, IF(is_frozen, LEAST(rate_of_all, made_rate), rate) AS ranked_rate,
         COALESCE(made_complete, is_complete) AND COALESCE(is_complete, TRUE) AS complete
  FROM made
)
SELECT /* place */ id, ROUND(rate, 1) AS "Success Rate", completed AS "Completed", total AS "# Tasks",
       ROUND(shown_rate, 1) AS "Success Rate of All", complete AS "Complete", decided AS "Decided By",
       IF(self_recorded, 'agent', 'judge') AS "Recorded By",
       played ->> 'name' AS "Name", NULLIF(concat_ws(' ', played ->> 'card_name', played ->> 'card_version'), '') AS "Agent",
       played ->> 'model' AS "Model", played ->> 'revision' AS "Revision", played ->> 'scenario' AS "Scenario",
       NULLIF(concat_ws(', ', made_with ->> '/environment/browser', made_with ->> '/environment/browser_mode',
                        IF(made_with ->> '/environment/guarded' = 'false', 'no guard', NULL)), '') AS "Browser", made_with ->> 'settle' AS "Settle",
       NULLIF(concat_ws(', ', made_with ->> 'actions', 'up to ' || (made_with ->> 'max_actions') || ' per reply'), '') AS "Actions",
       attempts AS "Attempts", task_set AS "Task Set", shards AS "Shards",
       ROUND(corrected, 1) AS "Corrected by Labels", labels AS "Labels", excluded AS "Excluded",
       ROUND(efficiency, 2) AS "Efficiency", IF(is_frozen, ROUND(shown_rate, 1), NULL) AS "Lower Bound", IF(is_frozen, ROUND(GREATEST(may_rate, shown_rate), 1), NULL) AS "Upper Bound"
FROM shown
ORDER BY MAX(IF(COALESCE(complete, TRUE), ROUND(ranked_rate, 1), NULL)) OVER (PARTITION BY task_set) DESC NULLS LAST, task_set,
         COALESCE(complete, TRUE) DESC, ROUND(ranked_rate, 1) DESC;
