// A driver and a connection to it over a real socket in a directory of its own, for tests.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { systemClock } from '../base/clock.ts'
import { type Logger, silentLog } from '../base/log.ts'
import { type CsiConnection, connectDriver } from './connect.ts'
import type { ServiceHandlers } from './driver.ts'
import type { Controller, Identity, Node } from './gen/csi_pb.js'
import type { CallObserver } from './metrics.ts'
import { type ServedDriver, serveDriver } from './serve.ts'

export interface SocketFixture {
  readonly path: string
  readonly driver: CsiConnection
  /** Serves, also again after `stop`. */
  serve(callees?: FixtureServices): Promise<ServedDriver>
  stop(): Promise<void>
  remove(): Promise<void>
}

export interface FixtureServices {
  readonly identity?: Partial<ServiceHandlers<typeof Identity>>
  readonly controller?: Partial<ServiceHandlers<typeof Controller>>
  readonly node?: Partial<ServiceHandlers<typeof Node>>
}

export async function startSocketFixture(
  options: {
    readonly clock?: Clock
    readonly log?: Logger
    readonly metrics?: CallObserver
    readonly pluginMetrics?: CallObserver
  } = {},
): Promise<SocketFixture> {
  const { clock = systemClock(), log = silentLog, metrics, pluginMetrics } = options
  const dir = await mkdtemp(join(tmpdir(), 'stowage-csi-'))
  const path = join(dir, 'csi.sock')
  const driver = connectDriver({ address: `unix://${path}`, clock, log, ...(metrics ? { metrics } : {}) })
  let served: ServedDriver | undefined

  const trial: SocketFixture = {
    path,
    driver,
    async serve({ identity, controller, node } = {}) {
      served = await serveDriver({
        endpoint: path,
        identity: { ...IDENTITY, ...identity },
        ...(controller ? { controller } : {}),
        ...(node ? { node } : {}),
        ...(pluginMetrics ? { metrics: pluginMetrics } : {}),
        clock: systemClock(),
        log,
      })
      return served
    },
    async stop() {
      await served?.stop()
      served = undefined
    },
    async remove() {
      driver.close()
      await trial.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
  return trial
}

const IDENTITY: ServiceHandlers<typeof Identity> = {
  getPluginInfo: async () => ({ name: 'trial.example.com', vendorVersion: '1' }),
  getPluginCapabilities: async () => ({}),
  probe: async () => ({}),
}
