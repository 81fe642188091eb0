import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { intentOf } from './intent.ts'
import { settingsOf, volumeNameOf } from './options.ts'

describe('intentOf', () => {
  it('PROV-12 builds the finalizer from the names of provisioner and instance', () => {
    expect(intentOf('disks.example.com')).toBe('provisioning.stowage.dev/disks.example.com')
    expect(intentOf('disks.example.com', 'node-1')).toBe('provisioning.stowage.dev/disks.example.com.node-1')
    expect(intentOf('gluster.org/gluster-volume')).toBe('provisioning.stowage.dev/gluster.org-gluster-volume')
  })

  it('PROV-12 returns valid and distinct finalizer names for all provisioners', () => {
    const part = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$/)
    const name = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('.'))
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(intentOf(a).split('/')[1]).toMatch(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/)
        expect(intentOf(a) === intentOf(b)).toBe(a === b)
      }),
    )
  })
})

describe('volumeNameOf', () => {
  const UID = '5a294561-7e5b-11e6-a20e-0eb6048532a3'
  it.each([
    [{}, `pvc-${UID}`],
    [{ volumeNamePrefix: 'vol' }, `vol-${UID}`],
    [{ volumeNameUuidLength: 10 }, 'pvc-5a2945617e'],
    [{ volumeNameUuidLength: 64 }, 'pvc-5a2945617e5b11e6a20e0eb6048532a3'],
  ])('PROV-11 with options %j returns %s', (options, name) => {
    expect(volumeNameOf(UID, settingsOf(options))).toBe(name)
  })

  it.each([{ volumeNamePrefix: '' }, { volumeNameUuidLength: 0 }, { volumeNameUuidLength: 1.5 }])(
    'PROV-11 rejects options %j',
    (options) => {
      expect(() => settingsOf(options)).toThrow(/Cannot name volumes/)
    },
  )
})
