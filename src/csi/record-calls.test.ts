import { expect, it } from 'vitest'
import { silentLog } from '../base/log.ts'
import { manualClock } from '../base/manual-clock.ts'
import type { VolumeCall } from '../base/operation-details.ts'
import { createCsiDriver } from './driver.ts'
import { CsiError } from './errors.ts'
import { recordCalls } from './record-calls.ts'

it('PLUS-6 recordCalls records the code, message and duration of calls that change a volume, and passes all calls to the observer', async () => {
  const clock = manualClock()
  const observed: string[] = []
  const recorded: VolumeCall[] = []
  const observer = { observeCall: ({ method }: { method: string }) => void observed.push(method.split('/').at(-1)!) }
  const metrics = recordCalls(observer, { recordCall: (call) => void recorded.push(call) })
  const driver = createCsiDriver(
    async () => {
      await clock.advance(40)
      throw new CsiError('RESOURCE_EXHAUSTED', 'the pool is full')
    },
    { instruments: { clock, log: silentLog, metrics } },
  )
  await expect(driver.controller.createVolume({ name: 'pvc-1' })).rejects.toThrow()
  await expect(driver.node.nodePublishVolume({ volumeId: 'handle' })).rejects.toThrow()
  await expect(driver.node.nodeGetVolumeStats({ volumeId: 'handle' })).rejects.toThrow()
  const failure = { driver: 'unknown-driver', code: 'ResourceExhausted', durationMs: 40, message: 'the pool is full' }
  expect(recorded).toEqual([
    { ...failure, method: 'CreateVolume', volume: 'pvc-1' },
    { ...failure, method: 'NodePublishVolume', volume: 'handle' },
  ])
  expect(observed).toEqual(['CreateVolume', 'NodePublishVolume', 'NodeGetVolumeStats'])
})
