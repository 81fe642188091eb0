// ControllerPublishVolume and ControllerUnpublishVolume of the fake driver.
import type { Controller } from '../gen/csi_pb.js'
import {
  fail,
  formatCapability,
  getVolume,
  type Handlers,
  isMultiNode,
  requireControllerCapability,
  requireField,
} from './model.ts'

type AttachmentHandlers = Pick<Handlers<typeof Controller>, 'controllerPublishVolume' | 'controllerUnpublishVolume'>

export const attachmentHandlers: AttachmentHandlers = {
  controllerPublishVolume(model, { volumeId, nodeId, volumeCapability, readonly: isReadonly }) {
    requireControllerCapability(model, 'PUBLISH_UNPUBLISH_VOLUME')
    requireField(volumeId, 'volume_id')
    requireField(nodeId, 'node_id')
    requireField(volumeCapability, 'volume_capability')
    const capability = formatCapability(volumeCapability)
    if (isReadonly && !model.settings.controller.includes('PUBLISH_READONLY')) {
      fail('INVALID_ARGUMENT', 'readonly is not supported')
    }
    const volume = getVolume(model, volumeId)
    const node = model.settings.nodes.find(({ id }) => id === nodeId)
    if (!node) return fail('NOT_FOUND', `node "${nodeId}" does not exist`)

    const publishContext = { device: `/dev/${volume.id}` }
    const existingAttachment = volume.attachments[nodeId]
    if (existingAttachment) {
      if (existingAttachment.capability !== capability || existingAttachment.isReadonly !== isReadonly) {
        fail('ALREADY_EXISTS', `volume "${volumeId}" is published to node "${nodeId}" with other options`)
      }
      return { publishContext }
    }
    const otherNode = Object.keys(volume.attachments)[0]
    if (otherNode !== undefined && !isMultiNode(capability)) {
      fail('FAILED_PRECONDITION', `volume "${volumeId}" is published to node "${otherNode}"`)
    }
    const attachedCount = Object.values(model.state.volumes).filter(({ attachments }) => attachments[nodeId]).length
    if (node.maxVolumes !== undefined && attachedCount >= node.maxVolumes) {
      fail('RESOURCE_EXHAUSTED', `node "${nodeId}" has reached its limit of ${node.maxVolumes} volumes`)
    }
    volume.attachments[nodeId] = { capability, isReadonly }
    return { publishContext }
  },

  controllerUnpublishVolume(model, { volumeId, nodeId }) {
    requireControllerCapability(model, 'PUBLISH_UNPUBLISH_VOLUME')
    requireField(volumeId, 'volume_id')
    const attachments = model.state.volumes[volumeId]?.attachments ?? {}
    for (const node of nodeId ? [nodeId] : Object.keys(attachments)) delete attachments[node]
    return {}
  },
}
