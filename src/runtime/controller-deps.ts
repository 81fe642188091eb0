// What every controller gets: the client, the shared caches, clock, randomness and log.
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import type { CacheSet, ClientMetrics } from './index.ts'

export interface ControllerDeps {
  readonly client: Client
  /** One cache per kind for the whole process. Its creator stops it. */
  readonly caches: CacheSet
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics?: ClientMetrics
}
