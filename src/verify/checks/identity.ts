// Checks the Identity service, the capabilities and NodeGetInfo.
import { attempt, expectOk } from '../calls/outcomes.ts'
import { type Check, violate } from '../check.ts'
import { isValidDriverName } from '../profile.ts'

export const identityChecks: readonly Check[] = [
  {
    id: 'identity-name',
    title: 'the driver has a valid name and a version',
    rule: {
      section: 'GetPluginInfo',
      level: 'must',
      text: 'The name has at most 63 characters, starts and ends with a letter or digit, and has only letters, digits, dashes, dots and (as Kubernetes allows) underscores between; the vendor version is set.',
    },
    async run({ csi }) {
      const { name, vendorVersion } = expectOk(await attempt(csi.identity.getPluginInfo({})), 'GetPluginInfo')
      if (!isValidDriverName(name)) violate(`the name ${JSON.stringify(name)} (${name.length} characters) is not valid`)
      if (vendorVersion === '') violate('vendor_version is empty')
    },
  },
  {
    id: 'identity-probe',
    title: 'Probe succeeds and does not report that the driver is not ready',
    rule: {
      section: 'Probe',
      level: 'must',
      text: 'A healthy driver returns OK for Probe; ready is true, or unset.',
    },
    async run({ csi }) {
      const { ready } = expectOk(await attempt(csi.identity.probe({})), 'Probe')
      if (ready === false) violate('Probe reports that a driver that serves calls is not ready')
    },
  },
  {
    id: 'identity-stable',
    title: 'name and capabilities are the same in every response',
    rule: {
      section: 'GetPluginCapabilities',
      level: 'must',
      text: 'All instances of one version of a driver return the same capabilities, so two responses are equal.',
    },
    async run({ csi, profile }) {
      const readAll = async () => [
        expectOk(await attempt(csi.identity.getPluginInfo({})), 'GetPluginInfo'),
        expectOk(await attempt(csi.identity.getPluginCapabilities({})), 'GetPluginCapabilities'),
        profile.hasController &&
          expectOk(await attempt(csi.controller.controllerGetCapabilities({})), 'ControllerGetCapabilities'),
        profile.hasNode && expectOk(await attempt(csi.node.nodeGetCapabilities({})), 'NodeGetCapabilities'),
      ]
      const [first, second] = [toText(await readAll()), toText(await readAll())]
      if (first !== second) violate(`two rounds of calls returned different responses: ${first} and ${second}`)
    },
  },
  {
    id: 'plugin-services',
    title: 'a driver with a controller service advertises it',
    rule: {
      section: 'GetPluginCapabilities',
      level: 'must',
      text: 'A driver whose controller service has capabilities advertises CONTROLLER_SERVICE.',
    },
    needs: { controller: [] },
    async run({ profile }) {
      if (profile.controller.size > 0 && !profile.plugin.has('CONTROLLER_SERVICE'))
        violate('the controller service has capabilities, but GetPluginCapabilities does not list CONTROLLER_SERVICE')
    },
  },
  {
    id: 'controller-implemented',
    title: 'every advertised call of the controller service is implemented',
    rule: {
      section: 'ControllerGetCapabilities',
      level: 'must',
      text: 'A call whose capability is advertised is implemented: with an empty request it does not fail with UNIMPLEMENTED.',
    },
    needs: { controller: [] },
    async run({ csi, profile }) {
      const { controller } = csi
      const calls = {
        CREATE_DELETE_VOLUME: [() => controller.createVolume({}), () => controller.deleteVolume({})],
        PUBLISH_UNPUBLISH_VOLUME: [
          () => controller.controllerPublishVolume({}),
          () => controller.controllerUnpublishVolume({}),
        ],
        LIST_VOLUMES: [() => controller.listVolumes({})],
        GET_CAPACITY: [() => controller.getCapacity({})],
        CREATE_DELETE_SNAPSHOT: [() => controller.createSnapshot({}), () => controller.deleteSnapshot({})],
        LIST_SNAPSHOTS: [() => controller.listSnapshots({})],
        GET_SNAPSHOT: [() => controller.getSnapshot({})],
        EXPAND_VOLUME: [() => controller.controllerExpandVolume({})],
        MODIFY_VOLUME: [() => controller.controllerModifyVolume({})],
        GET_VOLUME: [() => controller.controllerGetVolume({})],
      }
      for (const [capability, methods] of Object.entries(calls))
        if (profile.controller.has(capability as keyof typeof calls))
          for (const call of methods) await expectImplemented(capability, call)
      await expectImplemented('the controller service', () => controller.validateVolumeCapabilities({}))
    },
  },
  {
    id: 'node-implemented',
    title: 'every advertised call of the node service is implemented',
    rule: {
      section: 'NodeGetCapabilities',
      level: 'must',
      text: 'A call whose capability is advertised is implemented: with an empty request it does not fail with UNIMPLEMENTED.',
    },
    needs: { node: [] },
    async run({ csi: { node }, profile }) {
      const calls = {
        STAGE_UNSTAGE_VOLUME: [() => node.nodeStageVolume({}), () => node.nodeUnstageVolume({})],
        GET_VOLUME_STATS: [() => node.nodeGetVolumeStats({})],
        EXPAND_VOLUME: [() => node.nodeExpandVolume({})],
      }
      for (const [capability, methods] of Object.entries(calls))
        if (profile.node.has(capability as keyof typeof calls))
          for (const call of methods) await expectImplemented(capability, call)
      await expectImplemented('the node service', () => node.nodePublishVolume({}))
      await expectImplemented('the node service', () => node.nodeUnpublishVolume({}))
    },
  },
  {
    id: 'node-info',
    title: 'NodeGetInfo identifies the node',
    rule: {
      section: 'NodeGetInfo',
      level: 'must',
      text: 'The node id is set and has at most 256 bytes, the volume limit is not negative, and two responses agree.',
    },
    needs: { node: [] },
    async run({ csi }) {
      const first = expectOk(await attempt(csi.node.nodeGetInfo({})), 'NodeGetInfo')
      const second = expectOk(await attempt(csi.node.nodeGetInfo({})), 'NodeGetInfo')
      const bytes = Buffer.byteLength(first.nodeId)
      if (bytes === 0 || bytes > 256) violate(`node_id has ${bytes} bytes; it must have 1 to 256`)
      if (first.maxVolumesPerNode < 0n) violate(`max_volumes_per_node is ${first.maxVolumesPerNode}`)
      if (toText(first) !== toText(second)) violate('two NodeGetInfo calls returned different responses')
    },
  },
  {
    id: 'node-topology',
    title: 'the topology of the node is valid',
    rule: {
      section: 'NodeGetInfo, Topology',
      level: 'must',
      text: 'A driver with accessibility constraints reports the topology of its node; keys are an optional prefix and a name of at most 63 characters each, values have at most 63 characters.',
    },
    needs: { node: [], plugin: ['VOLUME_ACCESSIBILITY_CONSTRAINTS'] },
    async run({ csi }) {
      const { accessibleTopology } = expectOk(await attempt(csi.node.nodeGetInfo({})), 'NodeGetInfo')
      const segments = Object.entries(accessibleTopology?.segments ?? {})
      if (segments.length === 0)
        violate('the driver advertises VOLUME_ACCESSIBILITY_CONSTRAINTS, but NodeGetInfo has no accessible_topology')
      for (const [key, value] of segments) {
        if (!TOPOLOGY_KEY.test(key)) violate(`the topology key ${JSON.stringify(key)} is not valid`)
        if (!TOPOLOGY_NAME.test(value)) violate(`the topology value ${JSON.stringify(value)} of ${key} is not valid`)
      }
    },
  },
]

const NAME = '[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?'
const TOPOLOGY_NAME = new RegExp(`^${NAME}$`)
const TOPOLOGY_KEY = new RegExp(`^([a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?/)?${NAME}$`, 'i')

async function expectImplemented(capability: string, call: () => Promise<unknown>): Promise<void> {
  const outcome = await attempt(call())
  if (outcome.code === 'UNIMPLEMENTED')
    violate(`a call of ${capability} is advertised, but returns UNIMPLEMENTED (${outcome.message})`)
}

const toText = (value: unknown): string =>
  JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? String(item) : item))
