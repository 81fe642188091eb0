// Rejects requests that the driver cannot fulfil, by the capabilities it reports. Checked first.
import type { DriverFacts } from '../../../csi/index.ts'
import type { WantedAttributes } from './attributes.ts'
import type { DataSource } from './data-source.ts'
import { refused } from './refusal.ts'

export const hasTopology = ({ plugin }: DriverFacts): boolean => plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS')

/** Throws a Refusal. */
export function checkAbilities(
  { plugin, controller }: DriverFacts,
  { source, attributes }: { source?: DataSource; attributes?: WantedAttributes } = {},
): void {
  const lacks = (what: string, capability: string, next = '') =>
    refused(`CSI driver does not support ${what}: ${capability} capability is not reported${next}`)
  if (!plugin.has('CONTROLLER_SERVICE')) throw lacks('dynamic provisioning', 'plugin CONTROLLER_SERVICE')
  if (!controller.has('CREATE_DELETE_VOLUME')) {
    throw lacks('dynamic provisioning', 'controller CREATE_DELETE_VOLUME')
  }
  if (source?.is === 'snapshot' && !controller.has('CREATE_DELETE_SNAPSHOT')) {
    throw lacks('snapshot restore', 'controller CREATE_DELETE_SNAPSHOT')
  }
  if (source?.is === 'clone' && !controller.has('CLONE_VOLUME')) {
    throw lacks('clone operations', 'controller CLONE_VOLUME')
  }
  if (!attributes || controller.has('MODIFY_VOLUME')) return
  if (attributes.className) throw lacks('VolumeAttributesClass', 'controller MODIFY_VOLUME')
  if (attributes.iops !== undefined || attributes.throughput !== undefined) {
    const next = '. Remove iops and throughput from the requests of the claim, or use the class of another driver'
    throw lacks('iops and throughput of claims', 'controller MODIFY_VOLUME', next)
  }
}
