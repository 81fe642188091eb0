import { create } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createCsiDriver } from './driver.ts'
import { CsiError } from './errors.ts'
import { Controller } from './gen/csi_pb.js'
import { serializeCalls, subjectOf } from './serialize-calls.ts'

/** A driver whose calls the test completes through `begun`. */
function heldDriver() {
  const begun: { subject: string | undefined; end: () => void; fail: () => void }[] = []
  const driver = createCsiDriver(
    (method, request) =>
      new Promise((resolve, reject) => {
        const subject = subjectOf(method, request)
        begun.push({
          subject,
          end: () => resolve(create(method.output)),
          fail: () => reject(new CsiError('INTERNAL', 'no')),
        })
      }),
  )
  return { driver: serializeCalls(driver), begun }
}
const settle = () => new Promise((resolve) => setImmediate(resolve))

describe('serialized calls of one volume', () => {
  it('PROV-9 never overlap, keep their order, and do not block other volumes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ volume: fc.constantFrom('a', 'b', 'c'), fails: fc.boolean(), end: fc.nat() }), {
          maxLength: 20,
        }),
        async (calls) => {
          const { driver, begun } = heldDriver()
          const ended: string[] = []
          const results = calls.map(({ volume }, at) =>
            driver.controller.deleteVolume({ volumeId: volume }).then(
              () => ended.push(`${volume}${at}`),
              () => ended.push(`${volume}${at}`),
            ),
          )
          const open = new Set<(typeof begun)[number]>()
          let seen = 0
          for (let step = 0; step < calls.length; step++) {
            await settle()
            for (; seen < begun.length; seen++) open.add(begun[seen]!)
            const subjects = [...open].map(({ subject }) => subject)
            expect(new Set(subjects).size).toBe(subjects.length) // no two of one volume
            const waiting = calls.slice().map(({ volume }) => volume)
            for (const volume of new Set(waiting)) {
              const left = waiting.filter((v) => v === volume).length - ended.filter((e) => e.startsWith(volume)).length
              expect(subjects.includes(`volume ${volume}`)).toBe(left > 0) // each volume with pending calls has one in flight
            }
            const call = [...open][calls[step]!.end % open.size]!
            open.delete(call)
            if (calls[step]!.fails) call.fail()
            else call.end()
          }
          await Promise.all(results)
          for (const volume of ['a', 'b', 'c']) {
            const order = ended.filter((e) => e.startsWith(volume)).map((e) => Number(e.slice(1)))
            expect(order).toEqual([...order].sort((x, y) => x - y))
          }
        },
      ),
    )
  })

  it('PROV-9 are not sent if they are cancelled while waiting', async () => {
    const { driver, begun } = heldDriver()
    const stop = new AbortController()
    const first = driver.controller.createVolume({ name: 'a' })
    const second = driver.controller.createVolume({ name: 'a' }, { signal: stop.signal }).catch((error) => error)
    const third = driver.controller.createVolume({ name: 'a' })
    await settle()
    stop.abort()
    expect(await second).toMatchObject({ codeName: 'CANCELLED' })
    await settle()
    expect(begun.length).toBe(1) // the third still waits for the first
    begun[0]!.end()
    await first
    await settle()
    expect(begun.length).toBe(2)
    begun[1]!.end()
    await third
  })

  it('PROV-9 are identified by volume id, by name for CreateVolume, and by source volume for CreateSnapshot', () => {
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
