import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import { type CsiDriver, createCsiDriver } from './driver.ts'
import { CsiError } from './errors.ts'
import { readDriverFacts } from './facts.ts'
import { waitUntilReady } from './ready.ts'

/** Creates a driver that returns the next response of a method for each call, and repeats the last one. */
function createScriptedDriver(responses: Record<string, (object | CsiError)[]>): CsiDriver {
  return createCsiDriver(async (method, _request, { signal }) => {
    if (signal?.aborted) throw new CsiError('CANCELLED', 'cancelled')
    const queue = responses[method.name]
    const response = queue && (queue.length > 1 ? queue.shift() : queue[0])
    if (!response) throw new CsiError('UNIMPLEMENTED', 'not implemented')
    if (response instanceof CsiError) throw response
    return create(method.output, response as never)
  })
}

describe('waitUntilReady', () => {
  it('SYS-6 probes every second until the driver is ready', async () => {
    const clock = manualClock()
    const driver = createScriptedDriver({
      Probe: [new CsiError('UNAVAILABLE', 'not running'), { ready: false }, { ready: true }],
    })
    let isReady = false
    const ready = waitUntilReady(driver, { clock, log: silentLog, signal: new AbortController().signal }).then(() => {
      isReady = true
    })
    await clock.nextTurn()
    await clock.advance(1_000)
    await clock.advance(999)
    expect(isReady).toBe(false)
    await clock.advance(1)
    await ready
  })

  it('SYS-6 treats a driver without the ready field or without Probe as ready', async () => {
    const options = { clock: manualClock(), log: silentLog, signal: new AbortController().signal }
    await waitUntilReady(createScriptedDriver({ Probe: [{}] }), options)
    await waitUntilReady(createScriptedDriver({}), options)
  })

  it('SYS-6 rejects when the signal is aborted', async () => {
    const clock = manualClock()
    const stop = new AbortController()
    const ready = waitUntilReady(createScriptedDriver({ Probe: [{ ready: false }] }), {
      clock,
      log: silentLog,
      signal: stop.signal,
    })
    const failure = expect(ready).rejects.toThrow('stopped')
    await clock.nextTurn()
    await clock.advance(10_000)
    stop.abort(new Error('stopped'))
    await failure
  })
})

describe('readDriverFacts', () => {
  it('SYS-6 returns capabilities with their names in csi.proto', async () => {
    const rpc = (type: number) => ({ type: { case: 'rpc', value: { type } } })
    const facts = await readDriverFacts(
      createScriptedDriver({
        GetPluginInfo: [{ name: 'd.example.com', vendorVersion: '2' }],
        GetPluginCapabilities: [
          {
            capabilities: [
              { type: { case: 'service', value: { type: 1 } } },
              { type: { case: 'volumeExpansion', value: { type: 2 } } },
            ],
          },
        ],
        ControllerGetCapabilities: [{ capabilities: [rpc(1), rpc(14), rpc(99), {}] }],
        NodeGetCapabilities: [{ capabilities: [rpc(3)] }],
      }),
    )
    expect(facts).toEqual({
      name: 'd.example.com',
      version: '2',
      plugin: new Set(['CONTROLLER_SERVICE']),
      expansion: new Set(['OFFLINE']),
      controller: new Set(['CREATE_DELETE_VOLUME', 'MODIFY_VOLUME']),
      node: new Set(['EXPAND_VOLUME']),
    })
  })

  it('SYS-6 omits unimplemented services and rejects if a call fails', async () => {
    const info = { GetPluginInfo: [{ name: 'd.example.com', vendorVersion: '2' }] }
    expect(await readDriverFacts(createScriptedDriver(info))).toMatchObject({ controller: new Set(), node: new Set() })
    const failing = createScriptedDriver({ ...info, NodeGetCapabilities: [new CsiError('UNAVAILABLE', 'not running')] })
    await expect(readDriverFacts(failing)).rejects.toThrow('not running')
  })
})
