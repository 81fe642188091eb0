// Replaces the upstream sidecars in a CSI driver's manifests with one `stowage sidecar` container. Other containers and
// objects are preserved, with their comments. merge-arguments.ts merges the arguments.
import { type Document, isMap, isScalar, isSeq, parseAllDocuments, type YAMLMap, type YAMLSeq } from 'yaml'
import { UsageError } from '../../../base/usage-error.ts'
import { IMAGE_NAMES, mergeArguments, UPSTREAM_SIDECARS, type UpstreamSidecar } from './merge-arguments.ts'

/** Returns the changed manifests. Throws a UsageError if no container is found, or if one cannot be replaced. */
export function replaceContainers(text: string, image: string): string {
  const documents = parseAllDocuments(text)
  let replacedCount = 0
  for (const document of documents) {
    const [problem] = document.errors
    if (problem) throw new UsageError(`Cannot read the manifest: ${problem.message}`)
    for (const containers of containerLists(document)) {
      if (replaceSidecars(containers, document, image)) replacedCount++
    }
  }
  if (replacedCount === 0) {
    throw new UsageError(
      `No container with an image of ${Object.values(IMAGE_NAMES).join(', ')} was found on standard input. ` +
        'Pass the manifest of the pod, Deployment, StatefulSet or DaemonSet of the driver.',
    )
  }
  return documents.map((document) => document.toString({ lineWidth: 0 })).join('') // each begins with its own ---
}

/** Returns the lists of containers in the object, or in the objects of a List. */
function containerLists(document: Document.Parsed): YAMLSeq[] {
  const items = document.get('items')
  const objects = isSeq(items) ? items.items : [document.contents]
  return objects.filter(isMap).flatMap((object) => {
    const lists = [object.getIn(['spec', 'template', 'spec', 'containers']), object.getIn(['spec', 'containers'])]
    return lists.filter(isSeq)
  })
}

/** Returns false if there is no container to replace. */
function replaceSidecars(containers: YAMLSeq, document: Document.Parsed, image: string): boolean {
  const sidecarContainers = new Map<UpstreamSidecar, YAMLMap>()
  for (const container of containers.items.filter(isMap)) {
    const sidecar = sidecarOf(container)
    if (!sidecar) continue
    if (sidecarContainers.has(sidecar)) throw new UsageError(`The pod has two containers of ${IMAGE_NAMES[sidecar]}.`)
    sidecarContainers.set(sidecar, container)
  }
  const [firstContainer, ...otherContainers] = UPSTREAM_SIDECARS.flatMap(
    (sidecar) => sidecarContainers.get(sidecar) ?? [],
  )
  if (!firstContainer) return false
  const { args, notes } = mergeArguments(
    Object.fromEntries(
      [...sidecarContainers].map(([sidecar, container]) => [sidecar, listArguments(sidecar, container)]),
    ),
  )
  firstContainer.set('image', image)
  firstContainer.delete('command')
  firstContainer.set('args', document.createNode(args))
  for (const otherContainer of otherContainers) {
    mergeList(firstContainer, otherContainer, { list: 'env', key: 'name' })
    mergeList(firstContainer, otherContainer, { list: 'ports', key: 'containerPort' })
    mergeList(firstContainer, otherContainer, { list: 'volumeMounts', key: 'mountPath' })
  }
  if (notes.length > 0) firstContainer.commentBefore = notes.map((note) => ` ${note}`).join('\n')
  containers.items = containers.items.filter((container) => !otherContainers.includes(container as YAMLMap))
  return true
}

function sidecarOf(container: YAMLMap): UpstreamSidecar | undefined {
  const image = container.get('image')
  const [, name = ''] = /(?:^|\/)([^/:@]+)(?:[:@][^/]*)?$/.exec(String(image)) ?? []
  return UPSTREAM_SIDECARS.find((sidecar) => name === IMAGE_NAMES[sidecar] || name === `external-${sidecar}`)
}

/** Returns the arguments of the program: what follows the program in `command`, and `args`. */
function listArguments(sidecar: UpstreamSidecar, container: YAMLMap): string[] {
  const listTexts = (name: string): string[] => {
    const list = container.get(name)
    if (list === undefined || list === null) return []
    if (!isSeq(list) || !list.items.every(isScalar))
      throw new UsageError(`${name} of ${IMAGE_NAMES[sidecar]} is not a list of strings.`)
    return list.items.map(({ value }) => String(value))
  }
  return [...listTexts('command').slice(1), ...listTexts('args')]
}

/** Adds the entries of a list whose key the container does not have yet. */
function mergeList(container: YAMLMap, otherContainer: YAMLMap, { list, key }: { list: string; key: string }): void {
  const additionalList = otherContainer.get(list)
  if (!isSeq(additionalList)) return
  const existingList = container.get(list)
  if (!isSeq(existingList)) {
    container.set(list, additionalList)
    return
  }
  const keys = new Set(existingList.items.filter(isMap).map((entry) => entry.get(key)))
  for (const entry of additionalList.items) if (isMap(entry) && !keys.has(entry.get(key))) existingList.add(entry)
}
