import { execFileSync } from 'node:child_process'
import { access, writeFile } from 'node:fs/promises'
import { constants, createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { createServer } from 'node:net'
import { Registry } from 'prom-client'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import { connectDriver } from './connect.ts'
import { CsiError, classifyCreateFailure } from './errors.ts'
import { VolumeCapability_AccessMode_Mode as Mode } from './gen/csi_pb.js'
import { createCsiMetrics, createCsiPluginMetrics } from './metrics.ts'
import { type SocketFixture, startSocketFixture } from './socket.fixture.ts'

let trial: SocketFixture
afterEach(() => trial.remove())

const failureOf = (call: Promise<unknown>): Promise<CsiError> =>
  call.then(
    () => expect.unreachable('it must fail'),
    (error) => {
      expect(error).toBeInstanceOf(CsiError)
      return error
    },
  )

function pledge<T>() {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

describe('a driver behind a socket', () => {
  it('SYS-6 is sent requests whole and its replies come back whole', async () => {
    trial = await startSocketFixture()
    await trial.serve({
      controller: {
        createVolume: async (request) => ({
          volume: {
            volumeId: `id-of-${request.name}`,
            capacityBytes: request.capacityRange?.requiredBytes,
            volumeContext: request.parameters,
            accessibleTopology: request.accessibilityRequirements?.requisite,
          },
        }),
      },
    })
    const { volume } = await trial.driver.controller.createVolume({
      name: 'pvc-1',
      capacityRange: { requiredBytes: 2n ** 53n + 1n },
      parameters: { tier: 'gold' },
      volumeCapabilities: [{ accessType: { case: 'mount', value: {} }, accessMode: { mode: Mode.SINGLE_NODE_WRITER } }],
      accessibilityRequirements: { requisite: [{ segments: { zone: 'a' } }] },
    })
    expect(volume).toMatchObject({
      volumeId: 'id-of-pvc-1',
      capacityBytes: 2n ** 53n + 1n,
      volumeContext: { tier: 'gold' },
      accessibleTopology: [{ segments: { zone: 'a' } }],
    })
  })

  it('SYS-6 tells what the driver answered when it refuses', async () => {
    trial = await startSocketFixture()
    await trial.serve({
      controller: {
        deleteVolume: async () => {
          throw new CsiError('FAILED_PRECONDITION', 'volume "a" is in use')
        },
      },
    })
    const error = await failureOf(trial.driver.controller.deleteVolume({ volumeId: 'a' }))
    expect(error).toMatchObject({ code: 9, codeName: 'FAILED_PRECONDITION', message: 'volume "a" is in use' })
  })

  it('SYS-6 answers UNIMPLEMENTED for methods and services it does not offer', async () => {
    trial = await startSocketFixture()
    await trial.serve({ controller: {} })
    expect(await failureOf(trial.driver.controller.listVolumes({}))).toMatchObject({ codeName: 'UNIMPLEMENTED' })
    expect(await failureOf(trial.driver.node.nodeGetInfo({}))).toMatchObject({ codeName: 'UNIMPLEMENTED' })
  })

  it('SYS-6 hides its mistakes from callers, and secrets from its own log', async () => {
    const lines: string[] = []
    const keep = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, message }))
    trial = await startSocketFixture({ log: { debug: keep, info: keep, warn: keep, error: keep } })
    await trial.serve({
      controller: {
        deleteVolume: async ({ secrets }) => {
          throw new TypeError(`cannot log in with ${secrets.password}`)
        },
      },
    })
    const error = await failureOf(
      trial.driver.controller.deleteVolume({ volumeId: 'a', secrets: { password: 'hunter2' } }),
    )
    expect(error.codeName).toBe('INTERNAL')
    expect(error.message).not.toMatch(/hunter2|connect\.test/)
    expect(lines.join('\n')).toContain('cannot log in with ***')
    expect(lines.join('\n')).not.toContain('hunter2')
  })

  it('PROV-16 keeps secrets that a driver repeats out of the error', async () => {
    trial = await startSocketFixture()
    await trial.serve({
      controller: {
        createVolume: async ({ secrets }) => {
          throw new CsiError('UNAUTHENTICATED', `user ${secrets.user} with ${secrets.password} refused`)
        },
      },
    })
    const secrets = { user: 'anna', password: 'anna.secret' }
    const error = await failureOf(trial.driver.controller.createVolume({ name: 'a', secrets }))
    expect(error.message).toBe('user *** with *** refused')
  })

  it('SYS-6 says which socket nobody answers at, and what to do', async () => {
    trial = await startSocketFixture()
    const error = await failureOf(trial.driver.identity.probe({}))
    expect(error.codeName).toBe('UNAVAILABLE')
    expect(error.message).toContain(trial.path)
    expect(error.message).toMatch(/ENOENT.*Start the driver/)
  })

  it('SYS-6 is reached again after it restarted', async () => {
    trial = await startSocketFixture()
    await trial.serve()
    await trial.driver.identity.probe({})
    await trial.stop()
    expect(await failureOf(trial.driver.identity.probe({}))).toMatchObject({ codeName: 'UNAVAILABLE' })
    await trial.serve()
    await vi.waitFor(() => trial.driver.identity.probe({}), { timeout: 5_000, interval: 10 })
  })

  it('SYS-11 that goes and comes back is one line each in the log, however many calls fail', async () => {
    const lines: string[] = []
    const line = (_fields: object, message: string) => {
      if (message.startsWith('the CSI driver')) lines.push(message)
    }
    trial = await startSocketFixture({ log: { ...silentLog, info: line, warn: line } })
    for (const timeoutMs of [1, 10_000]) await failureOf(trial.driver.identity.probe({}, { timeoutMs }))
    expect(lines).toEqual([]) // it has never been there: whoever waits for it says so
    await trial.serve()
    await vi.waitFor(() => trial.driver.identity.probe({}), { timeout: 5_000, interval: 10 })
    await trial.stop()
    for (let i = 0; i < 3; i++) await failureOf(trial.driver.identity.probe({}))
    expect(lines).toEqual(['the CSI driver is gone; calls fail until it is back'])
    await trial.serve({ controller: {} })
    await vi.waitFor(() => trial.driver.identity.probe({}), { timeout: 5_000, interval: 10 })
    await failureOf(trial.driver.controller.listVolumes({})) // refused, but answered
    expect(lines.slice(1)).toEqual(['the CSI driver answers again'])
  })

  // However the stream ends without a status, the work may have been done: none of these may look like an answer.
  const endings: Record<string, (stream: ServerHttp2Stream) => void> = {
    'with its connection': (stream) => stream.session?.destroy(),
    'in the middle': (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
    'without a status': (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
      stream.end()
    },
    'with bytes that are no reply': (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(Buffer.from([0, 0, 0, 0, 1, 255]))
    },
  }
  for (const [how, endStream] of Object.entries(endings)) {
    it(`PROV-12 whose call ends ${how} leaves the caller uncertain`, async () => {
      trial = await startSocketFixture()
      const dying = createHttp2Server().on('stream', (stream) => {
        stream.on('error', () => {})
        endStream(stream)
      })
      await new Promise<void>((resolve) => void dying.listen(trial.path, resolve))
      const error = await failureOf(trial.driver.controller.createVolume({ name: 'a' }))
      expect(classifyCreateFailure(error, { hasSelectedNode: true, hasTopology: true })).toBe('unfinished')
      expect(error.message).toMatch(/without an answer.*may have done/)
      trial.driver.close()
      await new Promise((resolve) => dying.close(resolve))
    })
  }

  it('SYS-6 that is too slow fails the call when its time is up, and sees that nobody waits any more', async () => {
    const clock = manualClock()
    trial = await startSocketFixture({ clock })
    const asked = pledge<AbortSignal>()
    await trial.serve({
      controller: {
        createVolume: (_, { signal }) => {
          asked.resolve(signal)
          return new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(new CsiError('ABORTED', 'nobody waits'))),
          )
        },
      },
    })
    const failure = failureOf(trial.driver.controller.createVolume({ name: 'a' }, { timeoutMs: 60_000 }))
    const signal = await asked.promise
    await clock.advance(59_999)
    expect(signal.aborted).toBe(false)
    const noticed = new Promise((resolve) => signal.addEventListener('abort', resolve))
    await clock.advance(1)
    expect(await failure).toMatchObject({ codeName: 'DEADLINE_EXCEEDED' })
    expect((await failure).message).toContain('60 s')
    await noticed
  })

  it('SYS-6 is told by the protocol how long its caller waits', async () => {
    trial = await startSocketFixture({ clock: manualClock() }) // our own clock stands still
    await trial.serve({
      identity: {
        probe: (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({}))),
      },
    })
    const error = await failureOf(trial.driver.identity.probe({}, { timeoutMs: 20 }))
    expect(error.codeName).toBe('DEADLINE_EXCEEDED')
  })

  it('SYS-6 sees a call given up when its caller is told to stop', async () => {
    trial = await startSocketFixture()
    const asked = pledge<AbortSignal>()
    await trial.serve({
      identity: {
        probe: (_, { signal }) => {
          asked.resolve(signal)
          return new Promise((resolve) => signal.addEventListener('abort', () => resolve({})))
        },
      },
    })
    const stop = new AbortController()
    const failure = failureOf(trial.driver.identity.probe({}, { signal: stop.signal }))
    const signal = await asked.promise
    const noticed = new Promise((resolve) => signal.addEventListener('abort', resolve))
    stop.abort()
    expect(await failure).toMatchObject({ codeName: 'CANCELLED' })
    await noticed
    expect(await failureOf(trial.driver.identity.probe({}, { signal: stop.signal }))).toMatchObject({
      codeName: 'CANCELLED',
    })
  })

  it('SYS-6 is not called after the connection was closed', async () => {
    trial = await startSocketFixture()
    await trial.serve({ identity: { probe: () => new Promise(() => {}) } })
    const underWay = failureOf(trial.driver.identity.probe({}))
    trial.driver.close()
    expect(await underWay).toMatchObject({ codeName: 'CANCELLED' })
    expect(await failureOf(trial.driver.identity.probe({}))).toMatchObject({ codeName: 'CANCELLED' })
  })

  it('SYS-11 is measured at both ends, by driver, method and code', async () => {
    const registry = new Registry()
    trial = await startSocketFixture({
      metrics: createCsiMetrics(registry),
      pluginMetrics: createCsiPluginMetrics(registry),
    })
    await trial.serve({
      controller: {
        deleteVolume: async () => {
          throw new CsiError('NOT_FOUND', 'no such pool')
        },
      },
    })
    await trial.driver.identity.getPluginInfo({})
    await failureOf(trial.driver.controller.deleteVolume({ volumeId: 'a' }))
    const text = await registry.metrics()
    for (const name of ['csi_sidecar_operations_seconds', 'csi_plugin_operations_seconds']) {
      expect(text).toContain(
        `${name}_count{driver_name="trial.example.com",method_name="/csi.v1.Controller/DeleteVolume",grpc_status_code="NotFound"} 1`,
      )
      expect(text).toContain(
        `${name}_count{driver_name="trial.example.com",method_name="/csi.v1.Identity/GetPluginInfo",grpc_status_code="OK"} 1`,
      )
    }
  })
})

describe('the socket', () => {
  it('SYS-6 that a killed driver left behind is replaced', async () => {
    trial = await startSocketFixture()
    const leave = `require('net').createServer().listen(${JSON.stringify(trial.path)}, () => process.kill(process.pid, 'SIGKILL'))`
    expect(() => execFileSync(process.execPath, ['-e', leave])).toThrow()
    await access(trial.path)
    await trial.serve()
    await trial.driver.identity.probe({})
  })

  it('SYS-6 on which someone answers is left alone', async () => {
    trial = await startSocketFixture()
    const other = createServer().listen(trial.path)
    await new Promise((resolve) => other.once('listening', resolve))
    await expect(trial.serve()).rejects.toThrow(/someone answers there/)
    await new Promise((resolve) => other.close(resolve))
  })

  it('SYS-6 is never put in the place of a file', async () => {
    trial = await startSocketFixture()
    await writeFile(trial.path, 'data')
    await expect(trial.serve()).rejects.toThrow(/not a socket/)
  })

  it('SYS-6 is removed when the driver stops', async () => {
    trial = await startSocketFixture()
    await trial.serve()
    await access(trial.path)
    await trial.stop()
    await expect(access(trial.path)).rejects.toThrow(/ENOENT/)
  })

  it('SYS-6 must be a unix socket with a path the system takes', async () => {
    trial = await startSocketFixture()
    const connect = (address: string) => () => connectDriver({ address, clock: manualClock(), log: silentLog }).close()
    expect(connect('tcp://localhost:1')).toThrow(/not a unix socket/)
    expect(connect('unix://')).toThrow(/names no socket/)
    expect(connect(`/${'x'.repeat(107)}`)).toThrow(/Choose a shorter one/)
    expect(connect(trial.path)).not.toThrow()
  })
})
