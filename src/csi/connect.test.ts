import { constants, createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { Registry } from 'prom-client'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import { connectDriver } from './connect.ts'
import { CsiError, classifyCreateFailure } from './errors.ts'
import { VolumeCapability_AccessMode_Mode as Mode } from './gen/csi_pb.js'
import { createCsiMetrics, createCsiPluginMetrics } from './metrics.ts'
import { type SocketFixture, startSocketFixture } from './socket.fixture.ts'

let fixture: SocketFixture
afterEach(() => fixture.remove())

const expectCsiError = (call: Promise<unknown>): Promise<CsiError> =>
  call.then(
    () => expect.unreachable('the call must fail'),
    (error) => {
      expect(error).toBeInstanceOf(CsiError)
      return error
    },
  )

function createDeferred<T>() {
  let resolve: (value: T) => void = () => {}
  const promise = new Promise<T>((resolvePromise) => {
    resolve = resolvePromise
  })
  return { promise, resolve }
}

describe('connectDriver', () => {
  it('SYS-6 transfers complete requests and responses', async () => {
    fixture = await startSocketFixture()
    await fixture.serve({
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
    const { volume } = await fixture.driver.controller.createVolume({
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

  it('SYS-6 rejects with the code and message of the driver', async () => {
    fixture = await startSocketFixture()
    await fixture.serve({
      controller: {
        deleteVolume: async () => {
          throw new CsiError('FAILED_PRECONDITION', 'volume "a" is in use')
        },
      },
    })
    const error = await expectCsiError(fixture.driver.controller.deleteVolume({ volumeId: 'a' }))
    expect(error).toMatchObject({ code: 9, codeName: 'FAILED_PRECONDITION', message: 'volume "a" is in use' })
  })

  it('rejects with UNIMPLEMENTED for methods and services without a handler', async () => {
    fixture = await startSocketFixture()
    await fixture.serve({ controller: {} })
    expect(await expectCsiError(fixture.driver.controller.listVolumes({}))).toMatchObject({ codeName: 'UNIMPLEMENTED' })
    expect(await expectCsiError(fixture.driver.node.nodeGetInfo({}))).toMatchObject({ codeName: 'UNIMPLEMENTED' })
  })

  it('PROV-16 does not return the details of unexpected errors, and the driver logs them without secrets', async () => {
    const lines: string[] = []
    const record = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, message }))
    fixture = await startSocketFixture({ log: { debug: record, info: record, warn: record, error: record } })
    await fixture.serve({
      controller: {
        deleteVolume: async ({ secrets }) => {
          throw new TypeError(`cannot log in with ${secrets.password}`)
        },
      },
    })
    const error = await expectCsiError(
      fixture.driver.controller.deleteVolume({ volumeId: 'a', secrets: { password: 'hunter2' } }),
    )
    expect(error.codeName).toBe('INTERNAL')
    expect(error.message).not.toMatch(/hunter2|connect\.test/)
    expect(lines.join('\n')).toContain('cannot log in with ***')
    expect(lines.join('\n')).not.toContain('hunter2')
  })

  it('PROV-16 removes secrets from error messages of the driver', async () => {
    fixture = await startSocketFixture()
    await fixture.serve({
      controller: {
        createVolume: async ({ secrets }) => {
          throw new CsiError('UNAUTHENTICATED', `user ${secrets.user} with ${secrets.password} rejected`)
        },
      },
    })
    const secrets = { user: 'anna', password: 'anna.secret' }
    const error = await expectCsiError(fixture.driver.controller.createVolume({ name: 'a', secrets }))
    expect(error.message).toBe('user *** with *** rejected')
  })

  it('rejects with the socket path and advice if the driver is not running', async () => {
    fixture = await startSocketFixture()
    const error = await expectCsiError(fixture.driver.identity.probe({}))
    expect(error.codeName).toBe('UNAVAILABLE')
    expect(error.message).toContain(fixture.path)
    expect(error.message).toMatch(/ENOENT.*Start the driver/)
  })

  it('SYS-6 reconnects after the driver restarts', async () => {
    fixture = await startSocketFixture()
    await fixture.serve()
    await fixture.driver.identity.probe({})
    await fixture.stop()
    expect(await expectCsiError(fixture.driver.identity.probe({}))).toMatchObject({ codeName: 'UNAVAILABLE' })
    await fixture.serve()
    await vi.waitFor(() => fixture.driver.identity.probe({}), { timeout: 5_000, interval: 10 })
  })

  it('SYS-11 logs once when the driver becomes unavailable and once when it is available again', async () => {
    const lines: string[] = []
    const record = (_fields: object, message: string) => {
      if (message.startsWith('the CSI driver')) lines.push(message)
    }
    fixture = await startSocketFixture({ log: { ...silentLog, info: record, warn: record } })
    for (const timeoutMs of [1, 10_000]) await expectCsiError(fixture.driver.identity.probe({}, { timeoutMs }))
    expect(lines).toEqual([]) // the driver has not started yet, which waitUntilReady logs
    await fixture.serve()
    await vi.waitFor(() => fixture.driver.identity.probe({}), { timeout: 5_000, interval: 10 })
    await fixture.stop()
    for (let i = 0; i < 3; i++) await expectCsiError(fixture.driver.identity.probe({}))
    expect(lines).toEqual(['the CSI driver is unavailable; calls fail until it restarts'])
    await fixture.serve({ controller: {} })
    await vi.waitFor(() => fixture.driver.identity.probe({}), { timeout: 5_000, interval: 10 })
    await expectCsiError(fixture.driver.controller.listVolumes({})) // an error response shows that the driver is available
    expect(lines.slice(1)).toEqual(['the CSI driver is available again'])
  })

  // If the stream ends without a status, the driver may have completed the call.
  const endings: Record<string, (stream: ServerHttp2Stream) => void> = {
    'with its connection': (stream) => stream.session?.destroy(),
    'with a reset': (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
    'without a status': (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' })
      stream.end()
    },
    'with an invalid response': (stream) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(Buffer.from([0, 0, 0, 0, 1, 255]))
    },
  }
  for (const [ending, endStream] of Object.entries(endings)) {
    it(`rejects with an uncertain outcome if the stream ends ${ending}`, async () => {
      fixture = await startSocketFixture()
      const server = createHttp2Server().on('stream', (stream) => {
        stream.on('error', () => {})
        endStream(stream)
      })
      await new Promise<void>((resolve) => void server.listen(fixture.path, resolve))
      const error = await expectCsiError(fixture.driver.controller.createVolume({ name: 'a' }))
      expect(classifyCreateFailure(error, { hasSelectedNode: true, hasTopology: true })).toBe('unfinished')
      const cause = ending === 'with its connection' ? 'broke during' : 'no valid response to'
      expect(error.message).toMatch(new RegExp(`${cause} CreateVolume.*may have completed the call`))
      fixture.driver.close()
      await new Promise((resolve) => server.close(resolve))
    })
  }

  it('rejects at the timeout and aborts the signal of the handler', async () => {
    const clock = manualClock()
    fixture = await startSocketFixture({ clock })
    const handlerSignal = createDeferred<AbortSignal>()
    await fixture.serve({
      controller: {
        createVolume: (_, { signal }) => {
          handlerSignal.resolve(signal)
          return new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(new CsiError('ABORTED', 'cancelled by the caller'))),
          )
        },
      },
    })
    const failure = expectCsiError(fixture.driver.controller.createVolume({ name: 'a' }, { timeoutMs: 60_000 }))
    const signal = await handlerSignal.promise
    await clock.advance(59_999)
    expect(signal.aborted).toBe(false)
    const whenAborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
    await clock.advance(1)
    expect(await failure).toMatchObject({ codeName: 'DEADLINE_EXCEEDED' })
    expect((await failure).message).toContain('60 s')
    await whenAborted
  })

  it('SYS-6 sends the timeout in the grpc-timeout header', async () => {
    fixture = await startSocketFixture({ clock: manualClock() }) // the clock of the client does not advance
    await fixture.serve({
      identity: {
        probe: (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({}))),
      },
    })
    const error = await expectCsiError(fixture.driver.identity.probe({}, { timeoutMs: 20 }))
    expect(error.codeName).toBe('DEADLINE_EXCEEDED')
  })

  it('aborts the signal of the handler when the caller cancels', async () => {
    fixture = await startSocketFixture()
    const handlerSignal = createDeferred<AbortSignal>()
    await fixture.serve({
      identity: {
        probe: (_, { signal }) => {
          handlerSignal.resolve(signal)
          return new Promise((resolve) => signal.addEventListener('abort', () => resolve({})))
        },
      },
    })
    const stop = new AbortController()
    const failure = expectCsiError(fixture.driver.identity.probe({}, { signal: stop.signal }))
    const signal = await handlerSignal.promise
    const whenAborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
    stop.abort()
    expect(await failure).toMatchObject({ codeName: 'CANCELLED' })
    await whenAborted
    expect(await expectCsiError(fixture.driver.identity.probe({}, { signal: stop.signal }))).toMatchObject({
      codeName: 'CANCELLED',
    })
  })

  it('rejects calls in flight and later calls after close()', async () => {
    fixture = await startSocketFixture()
    await fixture.serve({ identity: { probe: () => new Promise(() => {}) } })
    const pendingCall = expectCsiError(fixture.driver.identity.probe({}))
    fixture.driver.close()
    expect(await pendingCall).toMatchObject({ codeName: 'CANCELLED' })
    expect(await expectCsiError(fixture.driver.identity.probe({}))).toMatchObject({ codeName: 'CANCELLED' })
  })

  it('SYS-11 records metrics of the client and the server by driver, method and code', async () => {
    const registry = new Registry()
    fixture = await startSocketFixture({
      metrics: createCsiMetrics(registry),
      pluginMetrics: createCsiPluginMetrics(registry),
    })
    await fixture.serve({
      controller: {
        deleteVolume: async () => {
          throw new CsiError('NOT_FOUND', 'no such pool')
        },
      },
    })
    await fixture.driver.identity.getPluginInfo({})
    await expectCsiError(fixture.driver.controller.deleteVolume({ volumeId: 'a' }))
    const text = await registry.metrics()
    for (const name of ['csi_sidecar_operations_seconds', 'csi_plugin_operations_seconds']) {
      expect(text).toContain(
        `${name}_count{driver_name="test.example.com",method_name="/csi.v1.Controller/DeleteVolume",grpc_status_code="NotFound"} 1`,
      )
      expect(text).toContain(
        `${name}_count{driver_name="test.example.com",method_name="/csi.v1.Identity/GetPluginInfo",grpc_status_code="OK"} 1`,
      )
    }
  })

  it('throws for an address that is not a Unix socket or has a path that is too long', async () => {
    fixture = await startSocketFixture()
    const connect = (address: string) => () => connectDriver({ address, clock: manualClock(), log: silentLog }).close()
    expect(connect('tcp://localhost:1')).toThrow(/not a Unix socket/)
    expect(connect('unix://')).toThrow(/has no path/)
    expect(connect(`/${'x'.repeat(107)}`)).toThrow(/Choose a shorter path/)
    expect(connect(fixture.path)).not.toThrow()
  })
})
