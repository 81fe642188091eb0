// A CSI driver whose volumes every node can reach, one node at a time, as with network storage. A volume is a directory in
// `volumesDir`; each node has its own socket, and bind-mounts the directory where a volume is staged and published. Volumes and
// attachments are those of the fake driver.
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { createFakeDriver, type FakeDriver, fakeSettings } from '../../src/csi/fake/index.ts'
import { type ServedDriver, serveDriver } from '../../src/csi/serve.ts'
import { openHost } from '../../src/host/index.ts'

export const SHARED_DRIVER = 'shared.stowage.example'

export interface SharedDriver {
  readonly fake: FakeDriver
  readonly controllerSocket: string
  /** Directory of the volumes. */
  readonly volumesDir: string
  socketOf(node: string): string
  startNode(node: string): Promise<void>
  /** Stops the driver of a node. Its mounts stay. */
  stopNode(node: string): Promise<void>
  /** Clears the driver's state of the volumes on a node, as a restart of the machine does. */
  forgetMounts(node: string): void
  stop(): Promise<void>
}

export async function startSharedDriver(dir: string, nodes: readonly string[]): Promise<SharedDriver> {
  const clock = systemClock()
  const { mounts } = await openHost({ clock })
  const volumesDir = join(dir, 'shared')
  const socketOf = (name: string) => join(dir, `shared-${name}.sock`)
  await mkdir(volumesDir)
  const settings = fakeSettings({
    name: SHARED_DRIVER,
    controller: ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME', 'LIST_VOLUMES', 'LIST_VOLUMES_PUBLISHED_NODES'],
    node: ['STAGE_UNSTAGE_VOLUME'],
    nodes: nodes.map((id) => ({ id })),
  })
  const fake = createFakeDriver({ clock, settings })
  const served = new Map<string, ServedDriver>()

  const bind = async (source: string, target: string) => {
    await mkdir(source, { recursive: true })
    await mkdir(target, { recursive: true })
    await mounts.bind(source, target)
    return {}
  }

  function nodeServiceOf(node: string): ReturnType<FakeDriver['node']> {
    const records = fake.node(node)
    return {
      ...records,
      async nodeStageVolume(request, call) {
        await records.nodeStageVolume(request, call)
        return bind(join(volumesDir, request.volumeId), request.stagingTargetPath)
      },
      async nodeUnstageVolume(request, call) {
        await mounts.unmount(request.stagingTargetPath)
        return records.nodeUnstageVolume(request, call)
      },
      async nodePublishVolume(request, call) {
        await records.nodePublishVolume(request, call)
        return bind(request.stagingTargetPath, request.targetPath)
      },
      async nodeUnpublishVolume(request, call) {
        await mounts.unmount(request.targetPath)
        await rm(request.targetPath, { recursive: true, force: true })
        return records.nodeUnpublishVolume(request, call)
      },
    }
  }

  const serve = async (name: string, service: object) =>
    void served.set(
      name,
      await serveDriver({ endpoint: socketOf(name), identity: fake.identity, clock, log: silentLog, ...service }),
    )
  const stopOne = async (name: string) => {
    await served.get(name)?.stop()
    served.delete(name)
  }
  await serve('controller', { controller: fake.controller })

  return {
    fake,
    volumesDir,
    controllerSocket: socketOf('controller'),
    socketOf,
    startNode: (node) => serve(node, { controller: fake.controller, node: nodeServiceOf(node) }),
    stopNode: stopOne,
    forgetMounts(node) {
      for (const volume of Object.values(fake.state.volumes)) delete volume.onNodes[node]
    },
    async stop() {
      await Promise.all([...served.keys()].map(stopOne))
    },
  }
}
