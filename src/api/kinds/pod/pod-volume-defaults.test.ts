import { describe, expect, it } from 'vitest'
import { tryCreate } from '../kind.fixture.ts'
import { anEphemeralVolume, aPod } from './pod.fixture.ts'
import { podKind } from './pod.ts'

const createWithVolume = (volume: object) => tryCreate(podKind, aPod({ volumes: [volume] }))

describe('the defaults of a pod volume', () => {
  it.each([
    [{}, { emptyDir: {} }],
    [{ hostPath: { path: '/data' } }, { hostPath: { path: '/data', type: '' } }],
    [{ secret: { secretName: 's' } }, { secret: { secretName: 's', defaultMode: 420 } }],
    [{ configMap: { name: 'c' } }, { configMap: { name: 'c', defaultMode: 420 } }],
    [
      { downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'metadata.name' } }] } },
      {
        downwardAPI: {
          defaultMode: 420,
          items: [{ path: 'p', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } }],
        },
      },
    ],
    [{ image: { reference: 'tools' } }, { image: { reference: 'tools', pullPolicy: 'Always' } }],
  ])('change %j to %j', (source, expected) => {
    const { object, errors } = createWithVolume({ name: 'v', ...source })
    expect(errors).toEqual([])
    expect(object.spec?.volumes).toEqual([{ name: 'v', ...expected }])
  })

  it('CAP-14 include volumeMode Filesystem in a claim template', () => {
    const { object, errors } = createWithVolume(anEphemeralVolume())
    expect(errors).toEqual([])
    expect(object.spec?.volumes?.[0]?.ephemeral?.volumeClaimTemplate?.spec.volumeMode).toBe('Filesystem')
  })
})
