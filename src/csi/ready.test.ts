import { create } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import { type CsiDriver, createCsiDriver } from './driver.ts'
import { CsiError } from './errors.ts'
import { driverFacts } from './facts.ts'
import { waitUntilReady } from './ready.ts'

/** Returns the next of a method's answers for each call; repeats the last one. */
function scripted(answers: Record<string, (object | CsiError)[]>): CsiDriver {
  return createCsiDriver(async (method, _request, { signal }) => {
    if (signal?.aborted) throw new CsiError('CANCELLED', 'given up')
    const list = answers[method.name]
    const answer = list && (list.length > 1 ? list.shift() : list[0])
    if (!answer) throw new CsiError('UNIMPLEMENTED', 'not offered')
    if (answer instanceof CsiError) throw answer
    return create(method.output, answer as never)
  })
}

describe('waitUntilReady', () => {
  it('SYS-6 probes every second until the driver is ready', async () => {
    const clock = manualClock()
    const driver = scripted({ Probe: [new CsiError('UNAVAILABLE', 'not there'), { ready: false }, { ready: true }] })
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

  it('SYS-6 treats an unset field and an unimplemented Probe as ready', async () => {
    const options = { clock: manualClock(), log: silentLog, signal: new AbortController().signal }
    await waitUntilReady(scripted({ Probe: [{}] }), options)
    await waitUntilReady(scripted({}), options)
  })

  it('SYS-6 stops waiting when the signal is aborted', async () => {
    const clock = manualClock()
    const stop = new AbortController()
    const ready = waitUntilReady(scripted({ Probe: [{ ready: false }] }), {
      clock,
      log: silentLog,
      signal: stop.signal,
    })
    const failure = expect(ready).rejects.toThrow('enough')
    await clock.nextTurn()
    await clock.advance(10_000)
    stop.abort(new Error('enough'))
    await failure
  })
})

describe('driverFacts', () => {
  it('SYS-6 lists capabilities by their names in the protocol', async () => {
    const rpc = (type: number) => ({ type: { case: 'rpc', value: { type } } })
    const facts = await driverFacts(
      scripted({
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

  it('SYS-6 omits unimplemented services, and fails if a call fails', async () => {
    const info = { GetPluginInfo: [{ name: 'd.example.com', vendorVersion: '2' }] }
    expect(await driverFacts(scripted(info))).toMatchObject({ controller: new Set(), node: new Set() })
    const failing = scripted({ ...info, NodeGetCapabilities: [new CsiError('UNAVAILABLE', 'gone')] })
    await expect(driverFacts(failing)).rejects.toThrow('gone')
  })
})
