// The keys of the journal in the store, and how long a record is kept.

export const JOURNAL_PREFIX = 'journal/'
/** Records of one group commit or transaction. */
export const CHUNKS_PREFIX = `${JOURNAL_PREFIX}chunks/`
/** Compressed records of many chunks. */
export const SEGMENTS_PREFIX = `${JOURNAL_PREFIX}segments/`

/** Older records are deleted with their chunk or segment, which is as old as its newest record. */
export const RECORD_AGE_MS_MAX = 30 * 24 * 3_600_000
