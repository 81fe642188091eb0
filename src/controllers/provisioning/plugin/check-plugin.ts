// Checks the definition of a plugin and throws errors for its author.
import { labelValueProblems, qualifiedNameProblems } from '../../../api/names.ts'
import type { AnyProvisionerPlugin, LabelDeclarations, ProvisionerPlugin } from './contract.ts'
import type { ParameterDeclarations } from './parameter.ts'

/** Infers the argument types of `provision` and `modify` from the declarations, and checks the definition. */
export function defineProvisioner<
  const P extends ParameterDeclarations = Record<never, never>,
  const L extends LabelDeclarations = Record<never, never>,
  const A extends ParameterDeclarations = Record<never, never>,
>(plugin: ProvisionerPlugin<P, L, A>): ProvisionerPlugin<P, L, A> {
  checkPlugin(plugin)
  return plugin
}

export function checkPlugin(plugin: AnyProvisionerPlugin): void {
  const { name, labels = {}, parameters = {}, attributes = {} } = plugin
  if (!isVendorName(name)) {
    throw new Error(
      `${JSON.stringify(name)} cannot be the name of a provisioner: expected <your domain>/<name> in lower case, such as ` +
        'example.com/fast-disks, and not a domain of Kubernetes.',
    )
  }
  for (const method of ['provision', 'delete'] as const) {
    if (typeof plugin[method] !== 'function') throw new Error(`The provisioner ${name} lacks the function "${method}".`)
  }
  for (const [key, values] of Object.entries(labels as LabelDeclarations)) {
    const problems = [...qualifiedNameProblems(key), ...values.flatMap(labelValueProblems)]
    if (values.length === 0) problems.push('it has no values')
    if (problems.length > 0) {
      throw new Error(
        `The provisioner ${name} cannot declare the label ${JSON.stringify(key)}: ${problems.join('; ')}.`,
      )
    }
  }
  checkDeclarations(name, 'parameter', parameters)
  checkDeclarations(name, 'attribute', attributes)
  if (plugin.modify && !(plugin.attributes && plugin.csiDriver)) {
    throw new Error(
      `The provisioner ${name} has the function "modify" without "attributes" or "csiDriver": declare the attributes, and the ` +
        'driver in the csi source of its volumes, because only CSI volumes have an attributes class.',
    )
  }
}

function checkDeclarations(name: string, role: 'parameter' | 'attribute', declarations: ParameterDeclarations): void {
  for (const [key, declaration] of Object.entries(declarations)) {
    if (typeof declaration?.parse !== 'function') {
      throw new Error(
        `The provisioner ${name} declares the ${role} ${JSON.stringify(key)} without its type: ` +
          "use parameter.text({ doc: '…' }) or one of the other kinds.",
      )
    }
  }
}

/** The name is used in an annotation, the name of a Lease and a finalizer, which limit its length. */
const NAME_LENGTH_MAX = 63

const isVendorName = (name: unknown): boolean =>
  typeof name === 'string' &&
  name.length <= NAME_LENGTH_MAX &&
  /^[^/]+\/[^/]+$/.test(name) &&
  name === name.toLowerCase() &&
  qualifiedNameProblems(name).length === 0 &&
  !/(^|\.)(kubernetes|k8s)\.io\//.test(name)
