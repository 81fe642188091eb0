import { describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../api/kinds/index.ts'
import { createResources, parseRuntimeConfig } from './resources.ts'

const createWithConfig = (config: string) => createResources(ALL_KINDS, parseRuntimeConfig(config, ALL_KINDS))
const versionsOf = (config: string, group: string) =>
  createWithConfig(config).groups.find((entry) => entry.group === group)?.versions

describe('createResources', () => {
  it('VAC-1 serves attributes classes in three versions, the stable one first', () => {
    expect(versionsOf('', 'storage.k8s.io')).toEqual(['v1', 'v1beta1', 'v1alpha1'])
    for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
      expect(createWithConfig('').find('storage.k8s.io', version, 'volumeattributesclasses')).toMatchObject({
        apiVersion: `storage.k8s.io/${version}`,
        kind: { kind: 'VolumeAttributesClass' },
      })
    }
    expect(createWithConfig('').findPreferred('storage.k8s.io', 'volumeattributesclasses')?.version).toBe('v1')
  })

  it('PROV-1 serves storage classes as v1beta1, but not as v1alpha1', () => {
    expect(createWithConfig('').find('storage.k8s.io', 'v1beta1', 'storageclasses')).toBeDefined()
    expect(createWithConfig('').find('storage.k8s.io', 'v1alpha1', 'storageclasses')).toBeUndefined()
  })

  it('stores events.k8s.io events as core events', () => {
    const { find } = createWithConfig('')
    expect(find('events.k8s.io', 'v1', 'events')?.storedKind).toBe(find('', 'v1', 'events')?.kind)
  })
})

describe('--runtime-config', () => {
  it('SYS-15 disables a group version', () => {
    expect(versionsOf('storage.k8s.io/v1alpha1=false', 'storage.k8s.io')).toEqual(['v1', 'v1beta1'])
  })

  it('SYS-15 disables one resource of a version', () => {
    const { find } = createWithConfig('storage.k8s.io/v1/volumeattributesclasses=false')
    expect(find('storage.k8s.io', 'v1', 'volumeattributesclasses')).toBeUndefined()
    expect(find('storage.k8s.io', 'v1beta1', 'volumeattributesclasses')).toBeDefined()
    expect(find('storage.k8s.io', 'v1', 'storageclasses')).toBeDefined()
  })

  it('SYS-15 applies the most specific setting', () => {
    const { find, groups } = createWithConfig('api/all=false,storage.k8s.io/v1=true,storage.k8s.io/v1/csinodes=false')
    expect(groups.map(({ group }) => group)).toEqual(['', 'storage.k8s.io'])
    expect(find('storage.k8s.io', 'v1', 'csinodes')).toBeUndefined()
    expect(find('storage.k8s.io', 'v1', 'csidrivers')).toBeDefined()
  })

  it.each(['storage.k8s.io/v9=false', 'storage.k8s.io=false', 'v1/unicorns=false'])(
    'SYS-10 rejects the unknown name in %s',
    (config) => {
      expect(() => createWithConfig(config)).toThrow(/there is no/)
    },
  )

  it('SYS-10 rejects a value that is neither true nor false', () => {
    expect(() => createWithConfig('storage.k8s.io/v1=off')).toThrow(/=true or =false/)
  })

  it.each([
    ['v1=false', /v1 cannot be disabled: it is the only version of namespaces, claims and volumes/],
    ['v1/namespaces=false', /v1\/namespaces cannot be disabled/],
  ])('SYS-15 rejects %s, because the server requires the resource', (config, message) => {
    expect(() => createWithConfig(config)).toThrow(message)
  })

  it('SYS-15 disables single resources of the core version', () => {
    const { find } = createWithConfig('v1=true,v1/configmaps=false')
    expect(find('', 'v1', 'configmaps')).toBeUndefined()
    expect(find('', 'v1', 'persistentvolumeclaims')).toBeDefined()
  })
})
