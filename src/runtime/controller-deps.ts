// The dependencies that controllers have in common.
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import type { CacheSet, ClientMetrics, SilentLanes, WorkerBudget } from './index.ts'

export interface ControllerDeps {
  readonly client: Client
  /** The owner of the set stops the caches. */
  readonly caches: CacheSet
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics?: ClientMetrics
  /** The workers that all controllers share. Default: each controller has separate workers. */
  readonly workerBudget?: WorkerBudget
  /** The nodes for whose volumes controllers call a driver less often. Default: none. */
  readonly silentNodes?: SilentLanes
}
