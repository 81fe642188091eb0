// Rejects requests that need a capability which the driver does not report.
import type { DriverFacts } from '../../../csi/index.ts'
import type { RequestedAttributes } from './attributes.ts'
import type { DataSource } from './data-source.ts'
import { finalError } from './preparation-error.ts'

export const hasTopology = ({ plugin }: DriverFacts): boolean => plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS')

/** Throws a PreparationError if the driver does not report a capability that the request needs. */
export function checkCapabilities(
  { plugin, controller }: DriverFacts,
  { source, attributes }: { source?: DataSource; attributes?: RequestedAttributes } = {},
): void {
  const unsupportedError = (feature: string, capability: string, remedy = '') =>
    finalError(`CSI driver does not support ${feature}: ${capability} capability is not reported${remedy}`)
  if (!plugin.has('CONTROLLER_SERVICE')) throw unsupportedError('dynamic provisioning', 'plugin CONTROLLER_SERVICE')
  if (!controller.has('CREATE_DELETE_VOLUME')) {
    throw unsupportedError('dynamic provisioning', 'controller CREATE_DELETE_VOLUME')
  }
  if (source?.is === 'snapshot' && !controller.has('CREATE_DELETE_SNAPSHOT')) {
    throw unsupportedError('snapshot restore', 'controller CREATE_DELETE_SNAPSHOT')
  }
  if (source?.is === 'clone' && !controller.has('CLONE_VOLUME')) {
    throw unsupportedError('clone operations', 'controller CLONE_VOLUME')
  }
  if (!attributes || controller.has('MODIFY_VOLUME')) return
  if (attributes.className) throw unsupportedError('VolumeAttributesClass', 'controller MODIFY_VOLUME')
  if (attributes.iops !== undefined || attributes.throughput !== undefined) {
    const remedy = '. Remove iops and throughput from the requests of the claim, or use the class of another driver'
    throw unsupportedError('iops and throughput of claims', 'controller MODIFY_VOLUME', remedy)
  }
}
