// Test fixture: a CSI driver and a connection to it over a socket in a temporary directory.
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
  /** Starts the driver. Can be called again after stop(). */
  serve(services?: FixtureServices): Promise<ServedDriver>
  stop(): Promise<void>
  remove(): Promise<void>
}

interface FixtureServices {
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
  const driver = connectDriver({ address: `unix://${path}`, clock, log, metrics })
  let server: ServedDriver | undefined

  const fixture: SocketFixture = {
    path,
    driver,
    async serve({ identity, controller, node } = {}) {
      server = await serveDriver({
        endpoint: path,
        identity: { ...IDENTITY, ...identity },
        controller,
        node,
        metrics: pluginMetrics,
        clock: systemClock(),
        log,
      })
      return server
    },
    async stop() {
      await server?.stop()
      server = undefined
    },
    async remove() {
      driver.close()
      await fixture.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
  return fixture
}

const IDENTITY: ServiceHandlers<typeof Identity> = {
  getPluginInfo: async () => ({ name: 'test.example.com', vendorVersion: '1' }),
  getPluginCapabilities: async () => ({}),
  probe: async () => ({}),
}
