// How the kernel's own words for an error are read from its answer (linux/netlink.h, NLMSGERR_ATTR_MSG).
// iproute2 takes these functions from a library, libmnl, of which Debian has no static build; these few
// are all that it uses of it. build.sh puts this file where iproute2 looks for that one.
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { MNL_CB_ERROR = -1, MNL_CB_OK = 1 };
enum mnl_attr_data_type { MNL_TYPE_UNSPEC, MNL_TYPE_U32, MNL_TYPE_NUL_STRING };

static inline void *mnl_nlmsg_get_payload(const struct nlmsghdr *message)
{
	return NLMSG_DATA(message);
}

static inline size_t mnl_nlmsg_get_payload_len(const struct nlmsghdr *message)
{
	return message->nlmsg_len - NLMSG_HDRLEN;
}

static inline uint16_t mnl_attr_get_type(const struct nlattr *attribute)
{
	return attribute->nla_type & NLA_TYPE_MASK;
}

static inline int mnl_attr_type_valid(const struct nlattr *attribute, uint16_t largest)
{
	return mnl_attr_get_type(attribute) <= largest ? 1 : -1;
}

static inline const char *mnl_attr_get_str(const struct nlattr *attribute)
{
	return (const char *)attribute + NLA_HDRLEN;
}

static inline uint32_t mnl_attr_get_u32(const struct nlattr *attribute)
{
	uint32_t value;

	memcpy(&value, (const char *)attribute + NLA_HDRLEN, sizeof(value));
	return value;
}

static inline int mnl_attr_validate(const struct nlattr *attribute, enum mnl_attr_data_type type)
{
	size_t length = attribute->nla_len - NLA_HDRLEN;

	switch (type) {
	case MNL_TYPE_U32:
		return length == sizeof(uint32_t) ? 0 : -1;
	case MNL_TYPE_NUL_STRING:
		return length > 0 && mnl_attr_get_str(attribute)[length - 1] == '\0' ? 0 : -1;
	default:
		return 0;
	}
}

// Call `seen` for each attribute that stands `offset` bytes behind the message's header.
static inline int mnl_attr_parse(const struct nlmsghdr *message, unsigned int offset,
				 int (*seen)(const struct nlattr *, void *), void *data)
{
	const char *at = (const char *)message + NLMSG_HDRLEN + NLMSG_ALIGN(offset);
	const char *end = (const char *)message + message->nlmsg_len;
	int result = MNL_CB_OK;

	while (result > 0 && end - at >= NLA_HDRLEN) {
		const struct nlattr *attribute = (const struct nlattr *)at;

		if (attribute->nla_len < NLA_HDRLEN || attribute->nla_len > end - at)
			break;
		result = seen(attribute, data);
		at += NLA_ALIGN(attribute->nla_len);
	}
	return result;
}
