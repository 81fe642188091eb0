// Creates the ServiceAccount `default` in every active namespace. Pods that name no account run as this one.
import { serviceAccountKind } from '../../api/kinds/service-account/service-account.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import type { Controller } from '../../runtime/index.ts'
import { createObjectPerNamespaceController } from './object-per-namespace.ts'

export const createDefaultAccountController = (deps: ControllerDeps): Controller =>
  createObjectPerNamespaceController(
    { name: 'service-accounts', kind: serviceAccountKind, objectName: 'default', content: {} },
    deps,
  )
