// Compares the capabilities that a CSI driver reports at its socket with the classes and the CSIDriver object that use it.
import { volumeAttributesClassKind } from '../../../../api/kinds/attributes-class/attributes-class.ts'
import { csiDriverKind } from '../../../../api/kinds/csi-driver/csi-driver.ts'
import type { CSIDriver } from '../../../../api/kinds/csi-driver/csi-driver-schema.ts'
import { storageClassKind } from '../../../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../../../api/kinds/storage-class/storage-class-schema.ts'
import { canExpand } from '../../../../controllers/expanding/index.ts'
import type { DriverFacts } from '../../../../csi/index.ts'
import type { Check, DoctorContext, Finding } from '../check.ts'

export const driverCapabilities: Check = {
  id: 'driver-capabilities',
  title: 'Driver capabilities',
  async run(context) {
    const { socket, driver } = context
    if (!socket) {
      return [
        {
          status: 'unknown',
          message: 'Not checked: the capabilities of a driver are read from its socket.',
          remedy: 'stowage doctor --csi-address SOCKET',
        },
      ]
    }
    const { address, facts } = socket
    if ('problem' in facts) {
      const message = `The capabilities of the driver at ${address} cannot be read: ${facts.problem}.`
      return [{ status: 'error', message, remedy: 'Check that the driver runs and that --csi-address is its socket.' }]
    }
    const findings = [
      ...(driver === facts.name ? [] : [describeOtherDriver(context, facts)]),
      ...(await compareObjects(context, facts)),
    ]
    if (findings.length > 0) return findings
    const capabilities = [...facts.controller].sort().join(', ') || 'none'
    return [
      {
        status: 'ok',
        message: `${facts.name} ${facts.version} has every capability that its objects need. Controller capabilities: ${capabilities}.`,
      },
    ]
  },
}

const describeOtherDriver = ({ driver }: DoctorContext, facts: DriverFacts): Finding => ({
  status: 'error',
  message: `The driver at the socket is ${facts.name}, not ${driver}.`,
  remedy: `stowage doctor --driver ${facts.name}`,
})

async function compareObjects({ cluster }: DoctorContext, facts: DriverFacts): Promise<Finding[]> {
  const [classes, attributesClasses, drivers] = await Promise.all([
    cluster.list(storageClassKind),
    cluster.list(volumeAttributesClassKind),
    cluster.list(csiDriverKind),
  ])
  const csiDriver = drivers.find(({ metadata }) => metadata.name === facts.name)
  return [
    ...classes
      .filter(({ provisioner }) => provisioner === facts.name)
      .flatMap((storageClass) => compareClass(storageClass, facts)),
    ...attributesClasses
      .filter(({ driverName }) => driverName === facts.name && !facts.controller.has('MODIFY_VOLUME'))
      .map(({ metadata }) =>
        describeLack('error', `VolumeAttributesClass ${metadata.name}`, {
          use: 'modifies volumes',
          capability: 'MODIFY_VOLUME',
          facts,
          remedy: `kubectl delete volumeattributesclass ${metadata.name}`,
        }),
      ),
    ...(csiDriver ? compareCsiDriver(csiDriver, facts) : [describeMissingCsiDriver(facts)]),
  ]
}

interface Lack {
  /** What the object does that needs the capability. */
  readonly use: string
  readonly capability: string
  readonly facts: DriverFacts
  readonly remedy: string
}

const describeLack = (
  status: 'warning' | 'error',
  object: string,
  { use, capability, facts, remedy }: Lack,
): Finding => ({
  status,
  object,
  message: `It ${use}, but the driver ${facts.name} does not report ${capability}.`,
  remedy,
})

function compareClass({ metadata, ...storageClass }: Readonly<StorageClass>, facts: DriverFacts): Finding[] {
  const object = `StorageClass ${metadata.name}`
  const findings: Finding[] = []
  if (!facts.controller.has('CREATE_DELETE_VOLUME'))
    findings.push(
      describeLack('error', object, {
        use: 'provisions volumes',
        capability: 'CREATE_DELETE_VOLUME',
        facts,
        remedy: `kubectl delete storageclass ${metadata.name}`,
      }),
    )
  if (storageClass.allowVolumeExpansion && !canExpand(facts))
    findings.push(
      describeLack('error', object, {
        use: 'allows the expansion of volumes',
        capability: 'EXPAND_VOLUME',
        facts,
        remedy: `kubectl patch storageclass ${metadata.name} -p '{"allowVolumeExpansion":false}'`,
      }),
    )
  if (storageClass.allowedTopologies?.length && !facts.plugin.has('VOLUME_ACCESSIBILITY_CONSTRAINTS'))
    findings.push(
      describeLack('warning', object, {
        use: 'restricts the topology of volumes',
        capability: 'VOLUME_ACCESSIBILITY_CONSTRAINTS',
        facts,
        remedy: `Create the class ${metadata.name} again without allowedTopologies, which the driver does not receive.`,
      }),
    )
  return findings
}

function compareCsiDriver({ spec }: Readonly<CSIDriver>, facts: DriverFacts): Finding[] {
  const object = `CSIDriver ${facts.name}`
  const canAttach = facts.controller.has('PUBLISH_UNPUBLISH_VOLUME')
  const findings: Finding[] = []
  if (spec.storageCapacity && !facts.controller.has('GET_CAPACITY'))
    findings.push(
      describeLack('error', object, {
        use: 'makes the scheduler require storage capacity',
        capability: 'GET_CAPACITY',
        facts,
        remedy: `kubectl patch csidriver ${facts.name} --type merge -p '{"spec":{"storageCapacity":false}}'`,
      }),
    )
  if (spec.attachRequired !== false && !canAttach)
    findings.push(
      describeLack('warning', object, {
        use: 'makes every volume wait for a VolumeAttachment',
        capability: 'PUBLISH_UNPUBLISH_VOLUME',
        facts,
        remedy: `Create the CSIDriver ${facts.name} again with attachRequired: false; the field is immutable.`,
      }),
    )
  if (spec.attachRequired === false && canAttach)
    findings.push({
      status: 'error',
      object,
      message: `It has attachRequired: false, but the driver ${facts.name} reports PUBLISH_UNPUBLISH_VOLUME: volumes are not published to nodes.`,
      remedy: `Create the CSIDriver ${facts.name} again with attachRequired: true; the field is immutable.`,
    })
  return findings
}

const describeMissingCsiDriver = ({ name }: DriverFacts): Finding => ({
  status: 'warning',
  object: `CSIDriver ${name}`,
  message:
    'It does not exist, so every volume waits for a VolumeAttachment, and the scheduler ignores storage capacity.',
  remedy: 'Apply the CSIDriver object of the driver, which is part of its manifests.',
})
