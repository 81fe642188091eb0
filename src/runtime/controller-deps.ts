// What every controller is given: a way to the server, the caches it shares with the others, time, chance and a voice.
import type { Clock, Random } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import type { CacheSet, ClientMetrics } from './index.ts'

export interface ControllerDeps {
  readonly client: Client
  /** One watched copy of each kind for the whole process. Whoever made the set stops it. */
  readonly caches: CacheSet
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics?: ClientMetrics
}
