import { create } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCsiDriver } from './driver.ts'
import { CsiError } from './errors.ts'
import { Controller } from './gen/csi_pb.js'
import { serializeCalls, subjectOf } from './serialize-calls.ts'

/** Creates a driver whose calls do not return until the test completes them. */
function createBlockedDriver() {
  const startedCalls: { subject: string | undefined; end: () => void; fail: () => void }[] = []
  const driver = createCsiDriver(
    (method, request) =>
      new Promise((resolve, reject) => {
        const subject = subjectOf(method, request)
        startedCalls.push({
          subject,
          end: () => resolve(create(method.output)),
          fail: () => reject(new CsiError('INTERNAL', 'no')),
        })
      }),
  )
  return { driver: serializeCalls(driver), startedCalls }
}
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('serialized calls for one volume', () => {
  it('never overlap, keep their order, and do not block other volumes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ volume: fc.constantFrom('a', 'b', 'c'), fails: fc.boolean(), end: fc.nat() }), {
          maxLength: 20,
        }),
        async (calls) => {
          const { driver, startedCalls } = createBlockedDriver()
          const completedLabels: string[] = []
          const results = calls.map(({ volume }, index) =>
            driver.controller.deleteVolume({ volumeId: volume }).then(
              () => completedLabels.push(`${volume}${index}`),
              () => completedLabels.push(`${volume}${index}`),
            ),
          )
          const openCalls = new Set<(typeof startedCalls)[number]>()
          let seenCount = 0
          for (let step = 0; step < calls.length; step++) {
            await nextTurn()
            for (; seenCount < startedCalls.length; seenCount++) openCalls.add(startedCalls[seenCount]!)
            const subjects = [...openCalls].map(({ subject }) => subject)
            expect(new Set(subjects).size).toBe(subjects.length) // at most one call per volume
            const volumes = calls.slice().map(({ volume }) => volume)
            for (const volume of new Set(volumes)) {
              const remaining =
                volumes.filter((name) => name === volume).length -
                completedLabels.filter((label) => label.startsWith(volume)).length
              expect(subjects.includes(`volume ${volume}`)).toBe(remaining > 0) // each volume with pending calls has one in flight
            }
            const call = [...openCalls][calls[step]!.end % openCalls.size]!
            openCalls.delete(call)
            if (calls[step]!.fails) call.fail()
            else call.end()
          }
          await Promise.all(results)
          for (const volume of ['a', 'b', 'c']) {
            const order = completedLabels
              .filter((label) => label.startsWith(volume))
              .map((label) => Number(label.slice(1)))
            expect(order).toEqual([...order].sort((x, y) => x - y))
          }
        },
      ),
    )
  })

  it('are not sent if they are cancelled while waiting', async () => {
    const { driver, startedCalls } = createBlockedDriver()
    const stop = new AbortController()
    const firstCall = driver.controller.createVolume({ name: 'a' })
    const secondCall = driver.controller.createVolume({ name: 'a' }, { signal: stop.signal }).catch((error) => error)
    const third = driver.controller.createVolume({ name: 'a' })
    await nextTurn()
    stop.abort()
    expect(await secondCall).toMatchObject({ codeName: 'CANCELLED' })
    await nextTurn()
    expect(startedCalls.length).toBe(1) // the third still waits for the first
    startedCalls[0]!.end()
    await firstCall
    await nextTurn()
    expect(startedCalls.length).toBe(2)
    startedCalls[1]!.end()
    await third
  })

  it('are grouped by volume id, by name for CreateVolume, and by source volume for CreateSnapshot', () => {
    const { createVolume, controllerExpandVolume, createSnapshot, deleteSnapshot, listVolumes } = Controller.method
    const subject = (method: (typeof Controller.methods)[number], request: object) =>
      subjectOf(method, create(method.input, request as never))
    expect(subject(createVolume, { name: 'n' })).toBe('name n')
    expect(subject(controllerExpandVolume, { volumeId: 'v' })).toBe('volume v')
    expect(subject(createSnapshot, { sourceVolumeId: 'v', name: 's' })).toBe('volume v')
    expect(subject(deleteSnapshot, { snapshotId: 's' })).toBe('snapshot s')
    expect(subject(listVolumes, { startingToken: '3' })).toBe(undefined)
  })
})
