// Creates the options of the console's server. Imports insight.ts when it is called, because that file loads the code of many
// commands.
import { stowageVersion } from '../../../apiserver/version.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import type { Logger } from '../../../base/log.ts'
import type { Connection } from '../../../client/index.ts'
import type { ConsoleServerOptions } from '../../../console/index.ts'

export interface ConsoleSettings {
  readonly connection: Connection
  readonly namespace: string
  readonly kubeconfig?: string
  readonly context?: string
  /** The data directory of a server on this machine. */
  readonly dataDir?: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export async function loadConsoleOptions(settings: ConsoleSettings): Promise<ConsoleServerOptions> {
  const { createInsight } = await import('./insight.ts')
  const { connection, namespace, kubeconfig, context, clock, random, log } = settings
  return {
    ...{ connection, namespace, kubeconfig, context, clock, random, log, version: stowageVersion },
    insight: createInsight(settings),
  }
}
