// The dependencies of every controller: client, shared caches, clock, randomness, log and metrics.
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import type { CacheSet, ClientMetrics } from './index.ts'

export interface ControllerDeps {
  readonly client: Client
  /** One cache per kind for the whole process. The owner of the set stops the caches. */
  readonly caches: CacheSet
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics?: ClientMetrics
}
