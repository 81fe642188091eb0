import { expect, it } from 'vitest'
import { createFeatureLookup } from './feature-lookup.ts'

it('PLUS-9 the feature lookup returns the feature that needs a permission, and undefined for a permission that a component always needs', () => {
  const featureOf = createFeatureLookup(['provisioner'])
  expect(featureOf('watch', 'csinodes.storage.k8s.io')).toBe('topology')
  expect(featureOf('patch', 'persistentvolumeclaims/status')).toBe('transactions')
  expect(featureOf('watch', 'persistentvolumes')).toBeUndefined()
  expect(featureOf('update', 'nodes')).toBeUndefined()
  expect(createFeatureLookup(['provisioner', 'attacher'])('watch', 'csinodes.storage.k8s.io')).toBeUndefined()
  expect(createFeatureLookup(['resizer', 'garbage'])('watch', 'volumeattributesclasses.storage.k8s.io')).toBeUndefined()
})
