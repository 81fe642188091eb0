// Test fixture for whole processes: an API server on an HTTPS port, its kubeconfig in a temporary directory and, if a test
// needs one, a fake CSI driver on a socket. All are stopped when the test ends.
import { setMaxListeners } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { ServerFixtureOptions } from '../apiserver/server.fixture.ts'
import { systemClock } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { createHttpFixture } from '../client/http/http.fixture.ts'
import type { Client } from '../client/index.ts'
import { createBindingControllers } from '../controllers/binding/index.ts'
import { createProtectionControllers } from '../controllers/protection/index.ts'
import { createFakeDriver, type FakeSettings, fakeSettings } from '../csi/fake/index.ts'
import { serveDriver } from '../csi/index.ts'
import { buildKubeconfig } from '../processes/kubeconfig.ts'
import { createCacheSet } from '../runtime/index.ts'

export async function startProgramFixture(options: ServerFixtureOptions = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'stowage-program-'))
  const { api, client, pki, connection, listener, stop } = await createHttpFixture(options)
  const kubeconfig = join(dir, 'kubeconfig')
  const { server } = connection
  await writeFile(
    kubeconfig,
    buildKubeconfig({ server, caCert: pki.caCert, credential: { ...pki.admin, user: 'admin' } }),
  )
  const abort = new AbortController()
  setMaxListeners(0, abort.signal)
  const programs: Promise<unknown>[] = []
  const cleanups: (() => Promise<unknown>)[] = [() => rm(dir, { recursive: true }), stop]
  onTestFinished(async () => {
    abort.abort()
    await Promise.allSettled(programs)
    for (const cleanUp of cleanups.reverse()) await cleanUp()
  })
  return {
    api,
    client,
    dir,
    kubeconfig,
    /** Writes the kubeconfig of a user whose bearer token is the user's name. */
    async writeKubeconfig(user: string): Promise<string> {
      const path = join(dir, `${user}.kubeconfig`)
      const caData = Buffer.from(pki.caCert).toString('base64')
      const config = {
        clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': caData } }],
        users: [{ name: user, user: { token: user } }],
        contexts: [{ name: 'c', context: { cluster: 'c', user } }],
        'current-context': 'c',
      }
      await writeFile(path, JSON.stringify(config))
      return path
    },
    /** Closes the server's port. */
    stopServer: () => listener.stop(),
    /** Fires at the end of the test, or on `abort`. */
    signal: abort.signal,
    abort: () => abort.abort(),
    /** Registers a program that the fixture waits for when the test ends. */
    track<T>(program: Promise<T>): Promise<T> {
      programs.push(program)
      return program
    },
    /** Runs the other controllers of a cluster, binding and protection, until the test ends. */
    runOtherControllers(): void {
      programs.push(runOtherControllers(client, abort.signal))
    },
    /** Serves a fake driver for node-1. */
    async serveFakeDriver(settings: Partial<FakeSettings>) {
      const clock = systemClock()
      const fake = createFakeDriver({ clock, settings: fakeSettings({ ...settings }) })
      const { identity, controller } = fake
      const endpoint = join(dir, 'csi.sock')
      const services = { identity, controller, node: fake.node('node-1') }
      const server = await serveDriver({ endpoint, ...services, clock, log: silentLog })
      cleanups.push(() => server.stop())
      return { fake, endpoint }
    },
  }
}

async function runOtherControllers(client: Client, signal: AbortSignal): Promise<void> {
  const deps = { client, clock: systemClock(), random: Math.random, log: silentLog }
  const caches = createCacheSet(deps)
  const controllers = [
    createBindingControllers({ ...deps, caches, inProcessProvisioners: [] }),
    createProtectionControllers({ ...deps, caches }),
  ]
  await Promise.all(controllers.map((controller) => controller.run(signal)))
  await caches.stop()
}
