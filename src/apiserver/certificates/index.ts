// Public exports of certificates for users and nodes: bootstrap tokens and the admission of CertificateSigningRequests.
export {
  BOOTSTRAP_TOKEN_NAMESPACE,
  BOOTSTRAP_TOKEN_TYPE,
  type BootstrapToken,
  NODE_TOKEN_GROUP,
  parseTokenSecret,
  secretNameOf,
  splitToken,
  tokenSecret,
} from '../../api/kinds/secret/bootstrap-token-secret.ts'
export { type BootstrapTokens, createBootstrapTokens } from './bootstrap-token-authenticator.ts'
export { certificateAdmission } from './certificate-admission.ts'
