// The Identity service and ControllerGetCapabilities of the fake driver.
import {
  type Controller,
  ControllerServiceCapability_RPC_Type as ControllerType,
  PluginCapability_VolumeExpansion_Type as ExpansionType,
  type Identity,
  PluginCapability_Service_Type as ServiceType,
} from '../gen/csi_pb.js'
import type { Handlers } from './model.ts'

export const identityHandlers: Handlers<typeof Identity> = {
  getPluginInfo: ({ settings }) => ({ name: settings.name, vendorVersion: settings.version }),
  getPluginCapabilities: ({ settings }) => ({
    capabilities: [
      ...settings.plugin.map((name) => ({
        type: { case: 'service' as const, value: { type: ServiceType[name] } },
      })),
      ...settings.expansion.map((name) => ({
        type: { case: 'volumeExpansion' as const, value: { type: ExpansionType[name] } },
      })),
    ],
  }),
  probe: () => ({ ready: true }),
}

export const capabilityHandlers: Pick<Handlers<typeof Controller>, 'controllerGetCapabilities'> = {
  controllerGetCapabilities: ({ settings }) => ({
    capabilities: settings.controller.map((name) => ({
      type: { case: 'rpc' as const, value: { type: ControllerType[name] } },
    })),
  }),
}
