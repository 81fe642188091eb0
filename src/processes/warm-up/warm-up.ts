// Warms up a server.
import type { FeatureGates } from '../../api/feature-gates.ts'
import type { Clock, Random } from '../../base/clock.ts'
import { openSyntheticCluster } from './synthetic-cluster.ts'

export async function warmUp(options: {
  clock: Clock
  random: Random
  gates: FeatureGates
  signal: AbortSignal
}): Promise<void> {
  const { clock, signal } = options
  const T = () => `${Math.round(performance.now())} ms, cpu ${Math.round((process.cpuUsage().user + process.cpuUsage().system) / 1000)}`
  const verbose = process.env.WU_VERBOSE === '1'
  if (verbose) console.error('warm-up start', T())
  const cluster = await openSyntheticCluster(options)
  if (verbose) console.error('warm-up cluster', T())
  const total = Number(process.env.WU_CLAIMS ?? 200)
  const slice = Number(process.env.WU_SLICE ?? 8)
  const pause = Number(process.env.WU_PAUSE ?? 5)
  for (let n = 0; n < total && !signal.aborted; n += slice) {
    await cluster.createClaims(slice)
    await clock.sleep(pause)
  }
  if (verbose) console.error('warm-up claims', T())
  await cluster.stop()
  if (verbose) console.error('warm-up end', T())
}
