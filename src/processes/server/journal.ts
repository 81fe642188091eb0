// Starts the journal's background work: merging its records and exporting traces.
import { type ApiServer, type Journal, maintainJournal } from '../../apiserver/index.ts'
import { stowageVersion } from '../../apiserver/version.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Store } from '../../store/index.ts'

export interface StartJournalOptions {
  readonly store: Store
  readonly server: ApiServer
  /** The OTLP URL for traces of claims. Default: none are sent. */
  readonly tracesUrl: string | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Resolves when the journal's size is known. The work runs until the signal is aborted. */
export async function startJournal(journal: Journal, options: StartJournalOptions): Promise<void> {
  const { store, server, tracesUrl, clock, log, signal } = options
  const { registry } = server.metrics
  await maintainJournal({ store, journal, clock, log, registry, signal })
  if (tracesUrl === undefined) return
  const { exportTraces } = await import('./trace-export.ts') // loaded only if it is used
  exportTraces({ url: tracesUrl, steps: journal.steps, version: stowageVersion, registry, clock, log, signal })
}
