import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ControllerCapability, DriverFacts, NodeCapability, PluginService } from '../../../csi/index.ts'
import { deriveObjects, describeCapabilities } from './derive-objects.ts'

const PLUGIN: readonly PluginService[] = ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS']
const CONTROLLER: readonly ControllerCapability[] = [
  'CREATE_DELETE_VOLUME',
  'PUBLISH_UNPUBLISH_VOLUME',
  'GET_CAPACITY',
  'EXPAND_VOLUME',
  'MODIFY_VOLUME',
  'CLONE_VOLUME',
]
const NODE: readonly NodeCapability[] = ['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME', 'VOLUME_MOUNT_GROUP']

const facts = (capabilities: {
  readonly plugin?: readonly PluginService[]
  readonly controller?: readonly ControllerCapability[]
  readonly node?: readonly NodeCapability[]
}): DriverFacts => ({
  name: 'x.example',
  version: '1',
  plugin: new Set(capabilities.plugin),
  expansion: new Set(),
  controller: new Set(capabilities.controller),
  node: new Set(capabilities.node),
})

describe('deriveObjects', () => {
  it('derives the fields of the CSIDriver and the class from capabilities', () => {
    const arbitraryFacts = fc.record({
      plugin: fc.subarray([...PLUGIN]),
      controller: fc.subarray([...CONTROLLER]),
      node: fc.subarray([...NODE]),
    })
    fc.assert(
      fc.property(arbitraryFacts, ({ plugin, controller, node }) => {
        const { csiDriver, storageClass } = deriveObjects(facts({ plugin, controller, node }))
        expect(csiDriver).toMatchObject({
          attachRequired: controller.includes('PUBLISH_UNPUBLISH_VOLUME'),
          storageCapacity: controller.includes('GET_CAPACITY'),
          fsGroupPolicy: node.includes('VOLUME_MOUNT_GROUP') ? 'None' : 'File',
          preventPodSchedulingIfMissing: true,
        })
        expect(storageClass !== undefined).toBe(controller.includes('CREATE_DELETE_VOLUME'))
        if (!storageClass) return
        expect(storageClass).toEqual({
          provisioner: 'x.example',
          reclaimPolicy: 'Delete',
          volumeBindingMode: plugin.includes('VOLUME_ACCESSIBILITY_CONSTRAINTS') ? 'WaitForFirstConsumer' : 'Immediate',
          allowVolumeExpansion: controller.includes('EXPAND_VOLUME') || node.includes('EXPAND_VOLUME'),
        })
      }),
    )
  })

  it('describes a driver without capabilities, and one that only expands offline', () => {
    expect(describeCapabilities(facts({}))).toEqual([])
    const offline = {
      ...facts({ controller: ['EXPAND_VOLUME', 'MODIFY_VOLUME'] }),
      expansion: new Set(['OFFLINE'] as const),
    }
    expect(describeCapabilities(offline)).toEqual(['expand while not in use', 'modify attributes'])
  })
})
