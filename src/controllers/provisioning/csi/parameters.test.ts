import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { driverParameters, fsTypeOf, metadataParameters, SECRET_PURPOSES } from './parameters.ts'

describe('driverParameters', () => {
  it('PROV-10 omits reserved keys and keeps deprecated keys', () => {
    const reserved = SECRET_PURPOSES.flatMap((purpose) => [`${purpose}-name`, `${purpose}-namespace`])
    const parameters = {
      tier: 'fast',
      fstype: 'xfs',
      csiProvisionerSecretName: 'old',
      csiProvisionerSecretNamespace: 'old-ns',
      ...Object.fromEntries(reserved.map((key) => [`csi.storage.k8s.io/${key}`, 'x'])),
    }
    expect(driverParameters(parameters)).toEqual({
      tier: 'fast',
      fstype: 'xfs',
      csiProvisionerSecretName: 'old',
      csiProvisionerSecretNamespace: 'old-ns',
    })
  })

  it('PROV-10 rejects an unknown reserved key by name', () => {
    expect(() => driverParameters({ 'csi.storage.k8s.io/fsytpe': 'xfs' })).toThrowError(
      expect.objectContaining({
        failure: 'final',
        message: expect.stringContaining(
          'found unknown parameter key "csi.storage.k8s.io/fsytpe" with reserved namespace',
        ),
      }),
    )
  })

  it('PROV-10 never returns a reserved key', () => {
    const key = fc.oneof(
      fc.string(),
      fc.string().map((end) => `csi.storage.k8s.io/${end}`),
    )
    fc.assert(
      fc.property(fc.dictionary(key, fc.string()), (parameters) => {
        let driverOnly: Record<string, string> = {}
        try {
          driverOnly = driverParameters(parameters)
        } catch {
          expect(Object.keys(parameters).some((name) => name.startsWith('csi.storage.k8s.io/'))).toBe(true)
          return
        }
        for (const [name, value] of Object.entries(parameters)) {
          if (name.startsWith('csi.storage.k8s.io/')) expect(Object.hasOwn(driverOnly, name)).toBe(false)
          else expect(driverOnly[name]).toBe(value)
        }
      }),
    )
  })
})

describe('metadataParameters', () => {
  it('returns the names of the claim and the volume', () => {
    expect(metadataParameters({ metadata: { name: 'orders', namespace: 'shop' } } as never, 'pvc-1')).toEqual({
      'csi.storage.k8s.io/pvc/name': 'orders',
      'csi.storage.k8s.io/pvc/namespace': 'shop',
      'csi.storage.k8s.io/pv/name': 'pvc-1',
    })
  })
})

describe('fsTypeOf', () => {
  it.each([
    ['xfs', { 'csi.storage.k8s.io/fstype': 'xfs' }, 'ext4'],
    ['xfs', { fsType: 'xfs' }, 'ext4'],
    ['ext4', {}, 'ext4'],
    ['', {}, ''],
    ['ext4', { fstype: '' }, 'ext4'],
  ])('returns %j for parameters %j and default %j', (fsType, parameters, defaultFsType) => {
    expect(fsTypeOf(parameters as Record<string, string>, defaultFsType)).toBe(fsType)
  })

  it('PROV-10 rejects two file system types', () => {
    expect(() => fsTypeOf({ FSType: 'xfs', 'csi.storage.k8s.io/fstype': 'ext4' })).toThrowError(
      expect.objectContaining({ failure: 'final', message: expect.stringContaining('with both "fstype" and') }),
    )
  })
})
