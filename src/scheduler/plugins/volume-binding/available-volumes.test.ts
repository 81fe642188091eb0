import { expect, it } from 'vitest'
import { createVolumeIndex } from '../../../controllers/binding/volume-index.ts'
import { aVolume, fakeVolumeCache } from '../../../volumes/claims-and-volumes.fixture.ts'
import { AvailableVolumes } from './available-volumes.ts'

it('the scheduler and the binder share one index of the volumes by claim', () => {
  const volumes = fakeVolumeCache()
  const availableVolumes = new AvailableVolumes(volumes.cache)
  const index = createVolumeIndex(volumes.cache)
  expect(volumes.indexNames()).toHaveLength(1)
  volumes.put(aVolume({ name: 'reserved', claim: { name: 'data' } }))
  for (const { reservedFor } of [index, { reservedFor: (key: string) => availableVolumes.reservedFor(key) }])
    expect(reservedFor('default/data').map(({ metadata }) => metadata.name)).toEqual(['reserved'])
})
