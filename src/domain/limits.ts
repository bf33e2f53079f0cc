/** Bounds that hold whatever a caller, a team file or a model asks for. Checked against stored numbers, not payloads. */

/** A request body of the API. API Gateway takes 10 MB; asynchronous invocation 1 MB. */
export const MAX_BODY_BYTES = 1_000_000
/** Levels of sub-sessions below the root. */
export const MAX_DEPTH = 5
/** Children of one session that may be pending at once; above it a header would outgrow one write unit. */
export const MAX_PENDING = 100
/** Children of one group (a list of more tasks is split over groups). */
export const GROUP_SIZE = 100
/** Tasks of one run: a root of at most 100 groups of 100. */
export const MAX_TASKS = 10_000
/** Workers of one run at once, unless the request says otherwise. */
export const DEFAULT_MAX_CONCURRENCY = 50
export const HIGHEST_MAX_CONCURRENCY = 1_000
/** Sessions at once of all runs of a tenant that have not ended, each with the most that it may have. */
export const DEFAULT_TENANT_CONCURRENCY = 10_000
/** Accepted answers of one session in one round, unless the team file says otherwise. */
export const DEFAULT_MAX_ITERATIONS = 50
/** The same of an agent without tools: its first answer is its last, unless its model calls a tool that is not there. */
export const MAX_ITERATIONS_NO_TOOLS = 3
/** The most that a team file may ask for. */
export const MAX_ITERATIONS = 10_000
/** Calls in a row without an accepted answer, after which a session fails. */
export const MAX_FAILED_CALLS = 5
/** Invocations of one session beyond its continuations: a session that keeps killing its driver ends. */
export const MAX_EXTRA_ATTEMPTS = 10
/** How often a session may go on in a new invocation. */
export const MAX_CONTINUATIONS = 200
/** Output cap of a call where the team file gives none; output-caps.ts lowers it for models that refuse it. */
export const DEFAULT_OUTPUT_CAP = 32_768
/** Tool calls of one answer that are run; each further one is told so. Results are keyed with four digits. */
export const MAX_TOOL_CALLS = 1_000
/** Tool calls of one answer that are asked about; each further one is told so. They stand in the session's header. */
export const MAX_APPROVALS = 100
/** Bytes of the name of who decides: an ARN with a path has some 700 at most, the subject of a token should have 255. */
export const MAX_PRINCIPAL_BYTES = 1_024
/** Characters of the note of a decision. */
export const MAX_NOTE = 1_000
/** Bytes of one tool result that is made of the outputs of sessions. */
export const TOOL_RESULT_BYTES = 200_000
/** Bytes of all such results of one answer together: they stand in one request to the model. */
export const TOOL_RESULTS_BYTES = 2_000_000
/** Bytes after which a page of a list ends, whatever its `limit`: Lambda answers with 6 MB at most. */
export const PAGE_BYTES = 4_000_000
/** Streams of events that one process keeps open. */
export const MAX_STREAMS = 100
/** Answers of one tenant that wait for events at once. */
export const DEFAULT_POLLS = 20
/** Bytes of a preview in a header. */
export const PREVIEW_BYTES = 120
/** Bytes of an error message in a header or a run. */
export const ERROR_BYTES = 300
/** Shards of the index of due runs, so that it has no hot key. */
export const DUE_SHARDS = 8
/** Schedules of one tenant that were made over the API. */
export const MAX_SCHEDULES = 100
/** A schedule with what it starts: one item of the table. */
export const MAX_SCHEDULE_BYTES = 300_000
export const MAX_TAGS = 10
export const MAX_TAG_BYTES = 128
