"""As much of geni-lib as our profile calls, and not a name more: a wrong call fails.

It writes the elements that geni-lib writes; test_cloudlab.py compares the two where there is a network.
"""

import xml.etree.ElementTree as ET

RSPEC = "http://www.geni.net/resources/rspec/3"
EMULAB = "http://www.protogeni.net/resources/rspec/ext/emulab/1"


class IPv4Address:
    def __init__(self, address, netmask):
        self.address, self.netmask = address, netmask


class Execute:
    def __init__(self, shell, command):
        self.shell, self.command = shell, command


class Interface:
    __slots__ = ("addresses", "client_id")

    def __init__(self, client_id):
        self.client_id, self.addresses = client_id, []

    def addAddress(self, address):
        assert isinstance(address, IPv4Address)
        self.addresses.append(address)


class RawPC:
    __slots__ = ("disk_image", "hardware_type", "interfaces", "name", "services")
    sliver_type, exclusive = "raw", "true"

    def __init__(self, name):
        self.name, self.interfaces, self.services = name, [], []
        self.disk_image = self.hardware_type = None

    def addInterface(self, name):
        self.interfaces.append(Interface(f"{self.name}:{name}"))
        return self.interfaces[-1]

    def addService(self, service):
        self.services.append(service)

    def write(self, root):
        node = ET.SubElement(
            root, f"{{{RSPEC}}}node", client_id=self.name, exclusive=self.exclusive
        )
        sliver = ET.SubElement(node, f"{{{RSPEC}}}sliver_type", name=self.sliver_type)
        ET.SubElement(sliver, f"{{{RSPEC}}}disk_image", name=self.disk_image)
        if isinstance(self, XenVM):
            size = {"cores": str(self.cores), "ram": str(self.ram), "disk": "0"}
            ET.SubElement(sliver, f"{{{EMULAB}}}xen", size)
        if self.hardware_type:
            ET.SubElement(node, f"{{{RSPEC}}}hardware_type", name=self.hardware_type)
        for interface in self.interfaces:
            place = ET.SubElement(node, f"{{{RSPEC}}}interface", client_id=interface.client_id)
            for address in interface.addresses:
                attributes = {
                    "address": address.address,
                    "netmask": address.netmask,
                    "type": "ipv4",
                }
                ET.SubElement(place, f"{{{RSPEC}}}ip", attributes)
        services = ET.SubElement(node, f"{{{RSPEC}}}services")
        for service in self.services:
            attributes = {"shell": service.shell, "command": service.command}
            ET.SubElement(services, f"{{{RSPEC}}}execute", attributes)


class XenVM(RawPC):
    __slots__ = ("cores", "ram")
    sliver_type, exclusive = "emulab-xen", "false"


class LAN:
    __slots__ = ("best_effort", "interfaces", "link_multiplexing", "name", "vlan_tagging")

    def __init__(self, name):
        self.name, self.interfaces = name, []
        self.best_effort = self.link_multiplexing = self.vlan_tagging = False

    def addInterface(self, interface):
        assert isinstance(interface, Interface)
        self.interfaces.append(interface)

    def write(self, root):
        link = ET.SubElement(root, f"{{{RSPEC}}}link", client_id=self.name)
        for interface in self.interfaces:
            ET.SubElement(link, f"{{{RSPEC}}}interface_ref", client_id=interface.client_id)
        ET.SubElement(link, f"{{{RSPEC}}}link_type", name="lan")
        for name in ("vlan_tagging", "best_effort", "link_multiplexing"):
            if getattr(self, name):
                ET.SubElement(link, f"{{{EMULAB}}}{name}", enabled="true")


class Request:
    def __init__(self):
        self.resources = []

    def _add(self, resource):
        self.resources.append(resource)
        return resource

    def RawPC(self, name):
        return self._add(RawPC(name))

    def XenVM(self, name):
        return self._add(XenVM(name))

    def LAN(self, name):
        return self._add(LAN(name))

    def text(self):
        root = ET.Element(f"{{{RSPEC}}}rspec", type="request")
        for resource in self.resources:
            resource.write(root)
        return ET.tostring(root, encoding="unicode")
